"""The outside of the media service: buckets, the web, the child process that reads documents."""
