/** A world of reports, and a connection to it with the login of finance alone. */
import { afterAll } from 'vitest';
import { FINANCE } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import { makeWorld, useWorld } from '../reports/world.ts';

export async function useFinance(made = makeWorld()) {
  const world = await useWorld(made);
  const finance = connect({ url: world.url, role: FINANCE, max: 2 });
  afterAll(() => finance.end());
  /** The rows of a view or function of finance_v1. */
  const read = (text: string) =>
    finance.sql.unsafe<Record<string, unknown>[]>(`select * from finance_v1.${text}`);
  return { world, finance, read };
}
