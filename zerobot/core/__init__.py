"""The ground floor: frozen value types and Protocols. No I/O, nothing third-party but pydantic."""
