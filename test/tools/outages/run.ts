/** Runs one outage under a light load, and judges what was seen. */
import { request } from 'undici';
import { connect } from '../../../src/db/connect.ts';
import { monotonicMs, pause } from '../../../src/kernel/clock.ts';
import { makeApp } from '../../harness/app.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { until } from '../../harness/until.ts';
import { startTraffic, type Write } from '../soak/traffic.ts';
import { isOpen, type Outcomes, outcomesOf, undelivered } from '../soak/verdict.ts';
import { alertMetrics, firingAfter } from './alerts.ts';
import { type LogFigures, logFigures } from './log.ts';
import { openScene, type Scene, type ScenePlan } from './scene.ts';
import { makeScrapes, SCRAPE_S } from './series.ts';

export interface Outage {
  name: string;
  /** What happens, in a few words. */
  what: string;
  /** The alert that names it; none may fire without one. */
  alert: string | undefined;
  /** What /readyz of the first daemon answers while it lasts; 0 for no answer. */
  ready: 200 | 503 | 0;
  /** A line of the log that names it; undefined if the log has nothing to say. */
  line: RegExp | undefined;
  lastsS: number;
  /** How long the rules are evaluated from its beginning. */
  horizonS?: number;
  scene?: ScenePlan;
  begin(scene: Scene): Promise<unknown>;
  end(scene: Scene): Promise<unknown>;
}

export interface Seen {
  name: string;
  what: string;
  alert: string | undefined;
  /** Seconds from its beginning until the alert fires; undefined if it does not. */
  firesAfterS: number | undefined;
  /** The others, by when they fire. */
  others: Record<string, number>;
  log: LogFigures;
  /** The last answer of /readyz while it lasted, seconds until the first of that, and the last. */
  ready: { during: number; afterS: number | undefined; end: number };
  writes: number;
  outcomes: Outcomes;
  missingEvents: number;
  /** Seconds from its end until nothing was open and every event had arrived. */
  recoveredS: number;
  faults: string[];
}

export interface RunPlan {
  bin: string;
  perS: number;
  quietS: number;
  /** Instead of what each outage says. */
  lastsS?: number;
}

/** How the figures of a table were made. */
export const HELD =
  `Scraped every ${SCRAPE_S} s. For alerts that take longer than the outage lasted, promtool was ` +
  'given its second half again and again, and what only grew as growing on; nobody waited.';

/** Fires on a machine that other work keeps busy, whatever the outage. */
const OF_THE_MACHINE = /^TallyhookEventLoopSlow\b/;
const HISTORY_S = 300;
const HORIZON_S = 40 * 60;
const REPEAT_MS = 2_000;
const SETTLES_MS = 240_000;
const READY_AGAIN_MS = 60_000;
const GOES_ON_MS = 3_000;

export async function runOutage(
  outage: Outage,
  plan: RunPlan,
  say: (text: string) => void,
): Promise<Seen> {
  const scene = await openScene(plan.bin, outage.scene ?? {});
  try {
    return await observed(outage, scene, plan, say);
  } finally {
    // A server that is frozen cannot be stopped.
    await scene.postgres.signal('SIGCONT').catch(() => {});
    await scene.close();
  }
}

async function observed(
  outage: Outage,
  scene: Scene,
  plan: RunPlan,
  say: (text: string) => void,
): Promise<Seen> {
  const [unit] = scene.units;
  const scrapes = makeScrapes(alertMetrics());
  const apps = [makeApp(() => unit.url)];
  const traffic = startTraffic({
    apps: () => apps,
    sandbox: scene.sandbox,
    random: seededRandom(1),
    wallets: scene.wallets,
    perS: plan.perS,
    readsPerS: 1,
    lost: 0,
    repeatMs: REPEAT_MS,
  });
  const ready: { status: number; atMs: number }[] = [];
  /** Scrapes, and asks for readiness, once for each slot of that time. */
  const watch = async (seconds: number) => {
    for (let n = 0; n < Math.ceil(seconds / SCRAPE_S); n++) {
      const next = pause(SCRAPE_S * 1_000);
      const asked = readiness(unit.url).then((status) => ready.push({ status, atMs: now() }));
      await Promise.all([scrapes.scrape(scene.units), asked, next]);
    }
  };
  const started = monotonicMs();
  const now = () => monotonicMs() - started;
  await watch(plan.quietS);
  const window = { quiet: scrapes.slots, lines: scene.log().length };
  const begunMs = now();
  say(`begins: ${outage.what}`);
  await outage.begin(scene);
  ready.length = 0;
  await watch(plan.lastsS ?? outage.lastsS);
  const slots = scrapes.slots - window.quiet;
  const lastedS = (now() - begunMs) / 1_000;
  const logged = scene.log().slice(window.lines);
  const during = [...ready];
  say('ends');
  await outage.end(scene);
  const endedMs = now();
  const isReady = async () => (await readiness(unit.url)) === 200 || undefined;
  const readyAgain = await until(isReady, { deadlineMs: READY_AGAIN_MS });
  await pause(GOES_ON_MS);
  await traffic.stop();
  const { outcomes, missing } = await settled(scene, traffic.writes);
  const recoveredS = (now() - endedMs) / 1_000;
  const horizonS = outage.horizonS ?? HORIZON_S;
  const fired = await firingAfter(scrapes.series, {
    quiet: window.quiet,
    outage: slots,
    before: HISTORY_S / SCRAPE_S,
    after: Math.ceil(horizonS / SCRAPE_S) - slots,
  });
  const status = during.at(-1)?.status ?? 0;
  const firstMs = during.find((one) => one.status === status)?.atMs;
  const { name, what, alert } = outage;
  const seen: Omit<Seen, 'faults'> = {
    name,
    what,
    alert,
    firesAfterS: alert === undefined ? undefined : fired.get(alert)?.afterS,
    others: Object.fromEntries(
      [...fired]
        .filter(([other]) => other !== alert)
        .map(([other, { afterS, of }]) => [of ? `${other} (${of})` : other, afterS]),
    ),
    log: logFigures(logged, lastedS, outage.line),
    ready: {
      during: status,
      afterS: firstMs === undefined ? undefined : (firstMs - begunMs) / 1_000,
      end: readyAgain ? 200 : await readiness(unit.url),
    },
    writes: traffic.writes.length,
    outcomes,
    missingEvents: missing.length,
    recoveredS,
  };
  return { ...seen, faults: faultsOf(outage, seen) };
}

/** The status of /readyz; 0 without an answer. */
async function readiness(url: string): Promise<number> {
  try {
    const answer = await request(`${url}/readyz`, { signal: AbortSignal.timeout(4_000) });
    await answer.body.dump();
    return answer.statusCode;
  } catch {
    return 0;
  }
}

/** Waits until nothing is open and every event has arrived, and compares all writes. */
async function settled({ postgres, sandbox, receiver }: Scene, writes: readonly Write[]) {
  const db = connect({ url: postgres.url, max: 2 });
  try {
    const received = () =>
      new Set(receiver.requests.map(({ headers }) => headers['webhook-id'] ?? ''));
    const isDone = async () =>
      (!(await isOpen(db)) && (await undelivered(db, received())).length === 0) || undefined;
    await until(isDone, { deadlineMs: SETTLES_MS });
    const applied = new Map<string, number>();
    for (const { reason_type: name } of sandbox.control.effects(0n, 1_000_000))
      if (name !== null) applied.set(name, (applied.get(name) ?? 0) + 1);
    const tokens = new Set<bigint>();
    for (const { token_id: id, exists } of sandbox.world.tokens.values())
      if (exists) tokens.add(id);
    const outcomes = await outcomesOf(db, writes, { applied, tokens });
    return { outcomes, missing: await undelivered(db, received()) };
  } finally {
    await db.end();
  }
}

/** What an outage must not show, in words. */
function faultsOf(outage: Outage, seen: Omit<Seen, 'faults'>): string[] {
  const { alert, firesAfterS, others, log, ready, outcomes, missingEvents } = seen;
  const silent =
    alert === undefined ? Object.keys(others).filter((one) => !OF_THE_MACHINE.test(one)) : [];
  const faults: Record<string, boolean> = {
    [`${alert} does not fire`]: alert !== undefined && firesAfterS === undefined,
    [`${silent.join(', ')} should not fire`]: silent.length > 0,
    'no line of the log names it': !log.isNamed,
    [`the log is flooded: ${log.mostCommon}`]: log.isFlooded,
    [`/readyz says ${ready.during} instead of ${outage.ready}`]: ready.during !== outage.ready,
    [`/readyz says ${ready.end} after it`]: ready.end !== 200,
    [`applied and not recorded: ${outcomes.unrecorded.join(', ')}`]: outcomes.unrecorded.length > 0,
    [outcomes.wrong.join(', ')]: outcomes.wrong.length > 0,
    [`${missingEvents} events did not arrive`]: missingEvents > 0,
  };
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : []));
}
