-- finance_v1: what finance people query, read-only, documented column by column, never broken within v1.
create schema finance_v1;
