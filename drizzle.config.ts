/** Where drizzle-kit finds the tables and puts the migrations (`drizzle-kit generate --name=…`). */
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './src/*/tables.ts',
  out: './drizzle',
  schemaFilter: ['tallyhook'],
});
