"""The tenants' own releases, and experiments with texts over them."""
