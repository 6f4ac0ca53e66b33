/** Whether the database compares addresses, hashes and names by the forms of the kernel. */
import { Failure, must } from '../../kernel/errors.ts';
import type { Queryable } from '../connect.ts';

/** @throws Failure `bad_setting` that says how the database has to be created */
export async function checkText(db: Queryable): Promise<void> {
  const rows = await db.sql<{ encoding: string; lower: string }[]>`
    select getdatabaseencoding() as encoding, lower('ABCDEFGHIJKLMNOPQRSTUVWXYZ') as lower`;
  const { encoding, lower } = must(rows[0], 'row');
  if (encoding === 'UTF8' && lower === 'abcdefghijklmnopqrstuvwxyz') return;
  const found = encoding === 'UTF8' ? 'a locale with other small letters' : `encoding ${encoding}`;
  throw new Failure(
    'bad_setting',
    `the database has ${found}; create one with encoding UTF8 and locale C.UTF-8`,
  );
}
