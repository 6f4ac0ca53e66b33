/**
 * The parts of drizzle that tables and stores use, loaded as CommonJS. For every ES module of
 * drizzle-orm, Node parses its package.json of 180 kB again: 0.4 s of CPU at each start.
 */
import { createRequire } from 'node:module';

export type { SQL } from 'drizzle-orm';
export type * as Core from 'drizzle-orm/pg-core';
export type { PgRemoteDatabase } from 'drizzle-orm/pg-proxy';

const require = createRequire(import.meta.url);
const orm: typeof import('drizzle-orm') = require('drizzle-orm');
const core: typeof import('drizzle-orm/pg-core') = require('drizzle-orm/pg-core');
const driver: typeof import('drizzle-orm/pg-proxy') = require('drizzle-orm/pg-proxy');

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
  pgSchema,
  primaryKey,
  smallint,
  text,
  unique,
  uniqueIndex,
  uuid,
} = core;
export const { drizzle } = driver;
