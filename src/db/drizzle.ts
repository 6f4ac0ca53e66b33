/**
 * The parts of drizzle that tables and stores use, loaded as CommonJS. For every ES module of
 * drizzle-orm, Node parses its package.json of 180 kB again: 0.4 s of CPU at each start.
 */
import { createRequire } from 'node:module';

export type { SQL } from 'drizzle-orm';
export type * as Core from 'drizzle-orm/pg-core';
export type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';

const require = createRequire(import.meta.url);
const orm: typeof import('drizzle-orm') = require('drizzle-orm');
const core: typeof import('drizzle-orm/pg-core') = require('drizzle-orm/pg-core');
const driver: typeof import('drizzle-orm/postgres-js') = require('drizzle-orm/postgres-js');

export const {
  and,
  asc,
  count,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNotNull,
  isNull,
  notExists,
  or,
  sql,
} = orm;
export const {
  bigint,
  boolean,
  customType,
  doublePrecision,
  foreignKey,
  index,
  integer,
  PgDatabase,
  PgDialect,
  pgSchema,
  primaryKey,
  smallint,
  text,
  unique,
  uniqueIndex,
  uuid,
} = core;
export const { PostgresJsSession } = driver;
