/** Debian's Postgres by the folder of its socket, as Cloud SQL and Debian itself have it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { type PasswordServer, startPasswordServer } from '../harness/postgres-programs.ts';

let server: PasswordServer;
beforeAll(async () => {
  server = await startPasswordServer('of-a-test');
});
afterAll(() => server.close());

it.each(['', '&sslmode=require', '&channel_binding=prefer'])(
  'A socket needs no TLS in any mode%s',
  async (query) => {
    const db = connect({ url: `${server.socketUrl}${query}`, max: 1 });
    const [row] = await db.sql`select inet_server_addr() is null as is_local`;
    expect(row).toEqual({ isLocal: true });
    await db.end();
  },
);
