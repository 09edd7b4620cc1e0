-- Loses what the graph of users' items would be made again from; the graph itself stays.
DROP INDEX items_walk;
DROP TABLE links;
