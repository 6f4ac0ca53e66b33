/** What the doctor finds of Postgres: a primary and a standby of Debian's, if it is installed. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { over } from '../db/empty-database.ts';
import { runCommand } from '../harness/command.ts';
import { spawnDaemon } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';
import { freePort } from '../harness/listen.ts';
import { DEBIAN_BIN } from '../harness/postgres-programs.ts';
import { openServers, type Servers } from '../harness/replicated-servers.ts';
import { execute } from '../harness/temporary-server.ts';

interface Check {
  check: string;
  ok: boolean;
  found: string;
}

describe('The doctor', () => {
  if (!existsSync(DEBIAN_BIN)) {
    it('Its checks of Postgres are not tested without another one: apt-get install postgresql-15', () => {
      expect(existsSync(DEBIAN_BIN)).toBe(false);
    });
    return;
  }
  const folder = useFolder();
  let servers: Servers;
  /** Of the logins that setup made. */
  let daemonUrl: string;

  beforeAll(async () => {
    servers = await openServers(DEBIAN_BIN, false);
    await execute(servers.url, 'create database shop');
    const owner = at(servers.url);
    const { text } = await runCommand({}, 'setup', '--run', owner);
    daemonUrl = /^DATABASE_URL=(.*)$/m.exec(text)?.[1] ?? '';
    const ownerUrl = /^DATABASE_OWNER_URL=(.*)$/m.exec(text)?.[1] ?? '';
    const migrated = await runCommand(environment({ DATABASE_OWNER_URL: ownerUrl }), 'migrate');
    expect(migrated).toMatchObject({ code: 0 });
  });
  afterAll(() => servers.close());

  const at = (url: string) => Object.assign(new URL(url), { pathname: '/shop' }).href;
  const environment = (more: Record<string, string> = {}) => ({
    DATABASE_URL: daemonUrl,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    ...more,
  });
  async function found(check: string, more: Record<string, string> = {}) {
    const { text } = await runCommand(environment(more), 'doctor', '--json');
    const { checks }: { checks: Check[] } = JSON.parse(text.slice(text.indexOf('{')));
    return checks.find((one) => one.check === check);
  }

  it('finds no fault in the logins that setup makes, and in a replica that has everything', async () => {
    const replica = { DATABASE_READ_URL: at(servers.standbyUrl) };
    const { code, text } = await runCommand(environment(replica), 'doctor');
    expect([code, text]).toEqual([
      0,
      expect.stringMatching(/^ok {4}login: tallyhook_daemon, no s/),
    ]);
    expect(text).toContain('ok    connections: 97 by the limit of the server, 1 daemon(s) of 19');
    expect(text).toContain('ok    commits: become durable');
    expect(text).toContain('ok    heartbeats: none was lost');
    expect(text).toContain('ok    replica: has what is committed');
  });

  it('names a daemon that works with the login of a superuser', async () => {
    expect(await found('login', { DATABASE_URL: at(servers.url) })).toEqual({
      check: 'login',
      ok: false,
      found: expect.stringMatching(/^DATABASE_URL: login postgres is a superuser, .* setup makes$/),
    });
  });

  it('names a login that may have fewer connections than its daemons open', async () => {
    await execute(servers.url, 'alter role tallyhook_daemon connection limit 9');
    expect(await found('connections')).toEqual({
      check: 'connections',
      ok: false,
      found:
        '9 by the limit of the login, 1 daemon(s) of 19 open up to 19; alter role ' +
        'tallyhook_daemon connection limit -1, or lower database.connections',
    });
    await execute(servers.url, 'alter role tallyhook_daemon connection limit -1');
  });

  it('names a daemon that lost its heartbeat, and not one that was stopped', async () => {
    const settings = { http: { port: 0 }, daemon: { heartbeat_timeout_ms: 2_000 } };
    // The world of the sandbox.
    const env = environment({ DATA_DIR: folder });
    const stopped = await spawnDaemon(env, settings);
    expect(await stopped.stop()).toBe(0);
    expect(await found('heartbeats')).toMatchObject({ ok: true, found: 'none was lost' });
    const killed = await spawnDaemon(env, settings);
    await killed.kill();
    const lost = expect.stringMatching(
      /^dmn_\S+ \(gateway, api, workers.*\) has none since 20\d\d-.*: its commits hang/,
    );
    const none = () => found('heartbeats');
    await expect.poll(none, { timeout: 30_000 }).toMatchObject({ ok: false, found: lost });
  });

  it('names a replica that is away, behind or none', async () => {
    const nowhere = `postgres://postgres@127.0.0.1:${await freePort()}/shop`;
    const of = (url: string) => found('replica', { DATABASE_READ_URL: url });
    expect(await of(nowhere)).toMatchObject({
      ok: false,
      found: expect.stringMatching(/^DATABASE_READ_URL: no Postgres answers at 127\.0\.0\.1/),
    });
    expect(await of(daemonUrl)).toMatchObject({
      ok: false,
      found: expect.stringMatching(/^DATABASE_READ_URL: it is not a replica, so reports are made /),
    });
    await execute(servers.standbyUrl, 'select pg_wal_replay_pause()');
    await execute(at(servers.url), 'create table later (n int)');
    expect(await of(at(servers.standbyUrl))).toMatchObject({
      ok: false,
      found: expect.stringMatching(/^DATABASE_READ_URL: it is more than 10 s behind, /),
    });
    await execute(servers.standbyUrl, 'select pg_wal_replay_resume()');
  });

  it('names commits that hang for a standby that is gone, and leaves no session waiting', async () => {
    await execute(servers.url, "alter system set synchronous_standby_names = 'gone'");
    await execute(servers.url, 'select pg_reload_conf()');
    expect(await found('commits')).toEqual({
      check: 'commits',
      ok: false,
      found: expect.stringMatching(/^a commit did not end within 3 s.*synchronous_standby_names/),
    });
    const waiting = await over(
      servers.url,
      ({ sql }) => sql`
      select pid from pg_stat_activity where wait_event = 'SyncRep'`,
    );
    expect([...waiting]).toEqual([]);
    await execute(servers.url, 'alter system reset synchronous_standby_names');
    await execute(servers.url, 'select pg_reload_conf()');
    expect(await found('commits')).toMatchObject({ ok: true });
  });
});
