/**
 * From an external Postgres without a superuser to a running daemon: the logins that setup makes,
 * and the line that each obstacle is told with.
 */
import { connect as connectTcp, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SESSION } from '../../src/db/access/session.ts';
import { LOGINS } from '../../src/db/access/setup.ts';
import { connect } from '../../src/db/connect.ts';
import { emptyDatabases } from '../db/empty-database.ts';
import { makeApp } from '../harness/app.ts';
import { endOf, startCommand } from '../harness/command.ts';
import { environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { listen } from '../harness/listen.ts';
import { useWorld } from '../harness/rig.ts';

const PASSWORD = 'of-a-test';

const world = await useWorld();
const databases = emptyDatabases();
/** Database of a login that may create roles and is no superuser. */
let admin: string;
/** What setup printed. */
let printed: string;

beforeAll(async () => {
  const role = `admin_${process.pid}`;
  for (const login of LOGINS) await databases.run(`drop role if exists ${login}`);
  await databases.run(`create role ${role} login createrole password '${PASSWORD}'`);
  // Since Postgres 16 only who may administer a role may grant it.
  await databases.run(`grant tallyhook_writer, tallyhook_finance to ${role} with admin option`);
  admin = withLogin(await databases.make(), role, PASSWORD);
  await databases.run(`alter database ${nameOf(admin)} owner to ${role}`);
  const { code, out } = await run('src/cli/tallyhook.ts', ['setup', '--run', admin]);
  expect([code, out]).toEqual([0, expect.stringContaining('DATABASE_URL=')]);
  printed = out;
});
afterAll(async () => {
  await databases.drop();
  const server = emptyDatabases();
  const { username } = new URL(admin);
  for (const role of [...LOGINS, username]) await server.run(`drop role ${role}`);
  await server.drop();
});

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

function withLogin(url: string, login: string, password: string): string {
  return Object.assign(new URL(url), { username: login, password }).href;
}

/** The URL that setup printed after this text. */
function printedUrl(before: string): string {
  return new RegExp(`^${before}(.*)$`, 'm').exec(printed)?.[1] ?? '';
}

async function run(
  program: 'src/main.ts' | 'src/cli/tallyhook.ts',
  args: readonly string[],
  env: Record<string, string> = {},
) {
  const unused = { DATA_DIR: '/nonexistent/never-made' };
  const { code, out, err } = await endOf(startCommand({ ...unused, ...env }, args, { program }));
  return { code, out: out + err };
}

describe('The logins that setup makes with a login that is no superuser', () => {
  it('migrate, run a daemon, and read what finance may', async () => {
    const env = {
      ...environmentOf(printedUrl('DATABASE_URL='), world.sandbox.url),
      DATABASE_OWNER_URL: printedUrl('DATABASE_OWNER_URL='),
    };
    const daemon = await spawnDaemon(env, QUICK);
    const answer = await makeApp(() => daemon.url).give(world.ada, 5);
    expect(answer.status).toBe(200);
    await daemon.stop();
    const finance = connect({ url: printedUrl('For finance: '), max: 1 });
    const rows = await finance.sql`select amount from finance_v1.operations`;
    expect(rows).toEqual([{ amount: 5n }]);
    await expect(
      finance.single(({ sql }) => sql`select 1 from tallyhook.operations`),
    ).rejects.toMatchObject({ code: '42501' });
    await finance.end();
  });

  it('are enough without the owner once the database is migrated', async () => {
    const env = environmentOf(printedUrl('DATABASE_URL='), world.sandbox.url);
    const daemon = await spawnDaemon(env, QUICK);
    expect((await makeApp(() => daemon.url).call('GET', '/readyz')).status).toBe(200);
    await daemon.stop();
  });

  it('suffice for a migrate that has nothing to do', async () => {
    const env = environmentOf(printedUrl('DATABASE_URL='), world.sandbox.url);
    const { code, out } = await run('src/cli/tallyhook.ts', ['migrate'], env);
    expect([code, out]).toEqual([0, 'The database is up to date.\n']);
  });

  it('do not compile plans, whoever connects with them', async () => {
    const rows = await world.database.owner.sql<{ settings: string[] }[]>`
      select setconfig as settings from pg_db_role_setting
      where setrole in ('tallyhook_daemon'::regrole, 'tallyhook_reader'::regrole)`;
    for (const { settings } of rows) expect(settings).toContain('jit=off');
    expect(rows).toHaveLength(2);
  });

  it('give the daemon what a session has, for poolers that keep none', async () => {
    const rows = await world.database.owner.sql<{ settings: string[] }[]>`
      select setconfig as settings from pg_db_role_setting
      where setrole = 'tallyhook_daemon'::regrole`;
    const expected = Object.entries(SESSION).map(([name, value]) => `${name}=${value}`);
    expect(rows[0]?.settings.toSorted()).toEqual(expected.toSorted());
  });

  it('keep their passwords when setup runs again', async () => {
    const { code, out } = await run('src/cli/tallyhook.ts', ['setup', '--run', admin]);
    expect(code).toBe(0);
    for (const login of LOGINS) expect(out).toContain(`${login} existed; its password`);
    const daemon = connect({ url: printedUrl('DATABASE_URL='), max: 1 });
    expect(await daemon.sql`select 1 as one`).toEqual([{ one: 1 }]);
    await daemon.end();
  });

  it('get the passwords of the variables that name them, which are then not printed', async () => {
    const given = {
      DATABASE_URL: withLogin(admin, 'tallyhook_daemon', 'of-the-daemon-0123'),
      DATABASE_OWNER_URL: withLogin(admin, 'tallyhook_owner', 'of-the-owner-01234'),
      NODE_ENV: 'production',
    };
    const sql = await run('src/cli/tallyhook.ts', ['setup', admin], given);
    expect(sql.out).toContain("create role tallyhook_daemon login password 'of-the-daemon-0123'");
    expect(sql.out).toContain("create role tallyhook_owner login password 'of-the-owner-01234'");
    const urls = sql.out.split('\n').filter((line) => line.startsWith('-- '));
    expect(urls.filter((line) => line.includes(':…@'))).toHaveLength(2);
    expect(urls.join()).not.toContain('of-the-');
    const short = { DATABASE_URL: withLogin(admin, 'tallyhook_daemon', "it's") };
    expect(await run('src/cli/tallyhook.ts', ['setup', admin], short)).toEqual({
      code: 1,
      out: 'DATABASE_URL: setup takes a password of 16 to 200 letters, digits, - and _\n',
    });
    const others = { DATABASE_URL: withLogin(admin, 'somebody', 'of-somebody-012345') };
    const { out } = await run('src/cli/tallyhook.ts', ['setup', admin], others);
    expect(out).not.toContain('of-somebody');
  });

  it('are printed as SQL that a login runs by itself', async () => {
    const { code, out } = await run('src/cli/tallyhook.ts', ['setup', admin]);
    expect(code).toBe(0);
    const db = connect({ url: admin, max: 1 });
    await db.begin(({ sql }) => sql.unsafe(out));
    await db.end();
  });
});

describe('One line says what is wrong and what to do', () => {
  it.each<[string, () => string, RegExp]>([
    [
      'a login without the role of the daemon',
      () => printedUrl('DATABASE_OWNER_URL='),
      /^DATABASE_URL: login tallyhook_owner may not work as tallyhook_writer in .*; run npx tally/,
    ],
    [
      'a database without tables',
      () => printedUrl('DATABASE_URL=').replace(nameOf(admin), 'postgres'),
      /^the database is older than this program: it lacks 0000_tables, .*; run npx tallyhook migra/,
    ],
    [
      'a missing database',
      () => printedUrl('DATABASE_URL=').replace(nameOf(admin), 'nowhere'),
      /^DATABASE_URL: database nowhere does not exist at 127.0.0.1:\d+; create it or correct the/,
    ],
    [
      'an unknown host',
      () => 'postgres://a@nowhere.invalid/b',
      /^DATABASE_URL: host nowhere.invalid (is unknown|cannot be looked up); correct the name/,
    ],
    [
      'a host where nothing listens',
      () => 'postgres://a@127.0.0.1:1/b',
      /^DATABASE_URL: no Postgres answers at 127.0.0.1:1 \(ECONNREFUSED\); start it or correct the/,
    ],
  ])('for %s', async (_, url, line) => {
    const env = environmentOf(url(), world.sandbox.url);
    const { code, out } = await run('src/cli/tallyhook.ts', ['keys', 'list'], env);
    expect([code, out.trim()]).toEqual([1, expect.stringMatching(line)]);
    expect(out.trim().split('\n')).toHaveLength(1);
    const doctor = await run('src/cli/tallyhook.ts', ['doctor'], env);
    expect(doctor.out).toBe(`FAIL  configuration and database: ${out.trim()}\n`);
  });

  it.each([
    ['start', ['src/main.ts']],
    ['migrate', ['src/cli/tallyhook.ts', 'migrate']],
  ] as const)('for a login that may not change tables, at %s', async (_, [file, ...args]) => {
    const url = printedUrl('DATABASE_URL=').replace(nameOf(admin), 'postgres');
    const env = environmentOf(url, world.sandbox.url);
    const { code, out } = await run(file, args, { ...env, LOG_LEVEL: 'error' });
    const line =
      'login tallyhook_daemon may not change the tables of Tallyhook; set DATABASE_OWNER_URL to ' +
      'a login that may, which npx tallyhook setup makes\n';
    expect([code, out]).toEqual([1, line]);
  });

  it.each([
    ['wrong', 'correct its name or password'],
    ['no', 'its URL has no password: add it, or correct PGPASSWORD'],
  ])('for a login with %s password', async (which, advice) => {
    const url = new URL(printedUrl('DATABASE_OWNER_URL='));
    url.password = which === 'no' ? '' : 'another';
    const { code, out } = await run('src/cli/tallyhook.ts', ['setup', '--run', url.href]);
    const line = `setup: login tallyhook_owner is refused by ${url.host}; ${advice}\n`;
    expect([code, out]).toEqual([1, line]);
  });

  it('for a setup whose login may not create roles', async () => {
    const owner = printedUrl('DATABASE_OWNER_URL=');
    const { code, out } = await run('src/cli/tallyhook.ts', ['setup', '--run', owner]);
    const line =
      'login tallyhook_owner may not create the role tallyhook_writer; it needs CREATEROLE';
    expect([code, out]).toEqual([1, `${line}\n`]);
  });
});

/** The answer of a Postgres that is starting: an error of 29 bytes. */
const STARTING = 'E\0\0\0\x1dSFATAL\0C57P03\0Mstarting\0\0';

it('A start waits for a Postgres that is starting', async () => {
  const target = new URL(world.database.url);
  let refused = 0;
  const relay = createServer((near) => {
    if (refused++ < 2) return near.end(STARTING);
    const far = connectTcp(Number(target.port), target.hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
  });
  const port = await listen(relay);
  const env = environmentOf(withPort(target, port), world.sandbox.url);
  const daemon = await spawnDaemon(env, QUICK);
  expect(daemon.output()).toMatch(/Postgres at .* is starting or stopping; .*; waiting/);
  await daemon.stop();
  relay.close();
});

function withPort(url: URL, port: number): string {
  return Object.assign(new URL(url), { port: String(port) }).href;
}
