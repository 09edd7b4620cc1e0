"""The stores and models behind the ports."""
