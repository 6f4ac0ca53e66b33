/** The planted faults of every check, under the check that must find them. */

import { headers, names, parse, sizes } from './faults-files.ts';
import { dead, deps, direction, libraries, rings } from './faults-imports.ts';
import { sql, writers } from './faults-sql.ts';
import { tests, words } from './faults-words.ts';

export const FAULTS = {
  direction,
  deps,
  libraries,
  sql,
  writers,
  parse,
  sizes,
  headers,
  names,
  words,
  tests,
  dead,
  rings,
};
