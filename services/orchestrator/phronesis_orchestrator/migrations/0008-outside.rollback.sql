-- Loses the registered servers, their encrypted headers, and what was accepted of their tools.
DROP TABLE outside_tools;
DROP TABLE outside_servers;
DROP TABLE writes;
