"""What the product's speed is measured with: `make bench` runs it all and writes one report."""
