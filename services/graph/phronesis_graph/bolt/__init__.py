"""The graph store over Bolt: what every domain's store stands on."""
