"""The source of tables: SQL by a growing column, Delta and Iceberg by their versions; read by workers as Arrow."""
