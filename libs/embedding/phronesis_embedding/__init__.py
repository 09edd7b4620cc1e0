"""The local embedding model (`local`), and what words have to do with one another (`wordnet`)."""
