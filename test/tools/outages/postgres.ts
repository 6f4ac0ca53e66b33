/**
 * A Postgres of the machine that an outage may stop, freeze, fill and starve, with the logins that
 * `tallyhook setup` makes: the daemon works with one that is no superuser.
 */
import { execFile } from 'node:child_process';
import { appendFile, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runSteps, setupSteps } from '../../../src/db/access/setup.ts';
import { freePort } from '../../harness/listen.ts';
import { openPrograms, type PostgresPrograms } from '../../harness/postgres-programs.ts';
import { execute } from '../../harness/temporary-server.ts';

const run = promisify(execFile);

/** The login of the daemons. */
export const DAEMON = 'tallyhook_daemon';
export const CONNECTIONS_MAX = 60;

export interface Postgres {
  /** The superuser's URL of the database. */
  url: string;
  daemonUrl: string;
  ownerUrl: string;
  /** A standby that replays what this one commits, if it was asked for. */
  standby: { url: string; stop(): Promise<void>; start(): Promise<void> } | undefined;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Sends every process of the server a signal. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** Runs one statement as the superuser. */
  execute(statement: string): Promise<void>;
  /** What `clock_timestamp()` is away from the machine's clock. Only with a clock of its own. */
  stepClock(ms: number): Promise<void>;
  /** Leaves no byte free on its disk, or gives the space back. Only with a disk of its own. */
  fillDisk(): Promise<void>;
  emptyDisk(): Promise<void>;
  close(): Promise<void>;
}

export interface PostgresPlan {
  /** The folder of Postgres' programs, such as /usr/lib/postgresql/15/bin. */
  bin: string;
  /** The size of a disk of its own, a tmpfs, which only root can mount. */
  diskMb: number | undefined;
  standby: boolean;
  clock: boolean;
}

export async function openPostgres({
  bin,
  diskMb,
  standby,
  clock,
}: PostgresPlan): Promise<Postgres> {
  const programs = await openPrograms(bin);
  const { folder } = programs;
  const data = join(folder, 'data');
  if (diskMb !== undefined) await mount(data, folder, diskMb);
  await programs.initialize('data', { settings: `max_connections = ${CONNECTIONS_MAX}\n` });
  const port = await freePort();
  await programs.start('data', port);
  const urlOf = (user: string, at = port) => `postgres://${user}@127.0.0.1:${at}/tallyhook`;
  const url = urlOf('postgres');
  await execute(new URL('/postgres', url).href, 'create database tallyhook');
  const passwords = { [DAEMON]: 'none', tallyhook_owner: 'none', tallyhook_reader: 'none' };
  await runSteps(url, setupSteps('tallyhook', passwords as Parameters<typeof setupSteps>[1]));
  if (clock) await execute(url, CLOCK);
  const second = standby ? await openStandby(programs, port) : undefined;
  const ballast = join(data, 'ballast');
  return {
    url,
    daemonUrl: urlOf(DAEMON),
    ownerUrl: urlOf('tallyhook_owner'),
    standby: second && { ...second, url: urlOf(DAEMON, second.port) },
    stop: () => programs.stop('data', 'fast'),
    async start() {
      if (!(await isRunning(data))) await programs.start('data', port);
    },
    async signal(name) {
      for (const pid of await processesOf(data)) process.kill(pid, name);
    },
    execute: (statement) => execute(url, statement),
    stepClock: (ms) => execute(url, `update public.clock_step set ms = ${ms}`),
    async fillDisk() {
      const block = Buffer.alloc(64 * 1024);
      await writeFile(ballast, '');
      for (let isFull = false; !isFull; )
        isFull = await appendFile(ballast, block).then(
          () => false,
          () => true,
        );
    },
    emptyDisk: () => rm(ballast, { force: true }),
    async close() {
      await second?.stop().catch(() => {});
      await programs.stop('data', 'immediate').catch(() => {});
      if (diskMb !== undefined) await run('umount', [data]);
      await programs.remove();
    },
  };
}

/**
 * The clock of the machine is shared with everything else, so that of Postgres is another function
 * under the same name: every session reads the step.
 */
const CLOCK = `
  create table public.clock_step (ms float8 not null);
  insert into public.clock_step values (0);
  grant select on public.clock_step to public;
  set allow_system_table_mods = on;
  alter function pg_catalog.clock_timestamp() rename to machine_clock_timestamp;
  create function pg_catalog.clock_timestamp() returns timestamptz volatile language sql as $$
    select pg_catalog.machine_clock_timestamp() + ms * interval '1 ms' from public.clock_step $$`;

async function openStandby(programs: PostgresPrograms, primary: number) {
  const port = await programs.startStandby('standby', primary);
  return {
    port,
    start: () => programs.start('standby', port),
    stop: () => programs.stop('standby', 'immediate'),
  };
}

async function mount(at: string, folder: string, sizeMb: number): Promise<void> {
  await mkdir(at);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0700`, 'tmpfs', at]);
  const { stdout } = await run('id', ['-u', 'postgres']);
  await chown(at, Number(stdout), (await stat(folder)).gid);
}

/** The postmaster, and the processes that it has started. */
async function processesOf(data: string): Promise<number[]> {
  const [line] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
  const pid = Number(line);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return [pid, ...children.split(' ').filter(Boolean).map(Number)];
}

async function isRunning(data: string): Promise<boolean> {
  const pids = await processesOf(data).catch(() => []);
  return pids.length > 0;
}
