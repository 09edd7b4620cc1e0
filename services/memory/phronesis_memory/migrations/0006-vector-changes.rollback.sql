-- Loses what Weaviate has not been told yet, and reports of deletions that wait for it: let it answer first, until the table
-- vector_changes is empty.
DROP TABLE held_news;
DROP TABLE vector_changes;
