/** Outages of daemons, their processes and their receivers. */
import { pause } from '../../../src/kernel/clock.ts';
import type { Outage } from './run.ts';
import type { Scene } from './scene.ts';

const ALL_BUT_WORKERS = ['gateway', 'api', 'delivery'];

/** What goes on while an outage lasts; `calm` ends it and throws its failure. */
let over = new AbortController();
let going: Promise<void> = Promise.resolve();

function disturb(work: (signal: AbortSignal) => Promise<void>): void {
  over = new AbortController();
  going = work(over.signal);
  going.catch(() => {});
}

async function calm(): Promise<void> {
  over.abort();
  await going;
}

export const ofDaemons: readonly Outage[] = [
  {
    name: 'daemon-killed',
    what: 'the only daemon is killed, and nothing starts it',
    alert: 'TallyhookDown',
    ready: 0,
    line: undefined,
    lastsS: 20,
    begin: ({ units: [unit] }) => unit.kill(),
    end: ({ units: [unit] }) => unit.start(),
  },
  {
    name: 'workers-gone',
    what: 'the daemon with the role workers is gone, and from the targets of Prometheus too',
    alert: 'TallyhookRoleMissing',
    ready: 200,
    line: undefined,
    lastsS: 30,
    scene: { roles: [ALL_BUT_WORKERS, ['workers']] },
    async begin({ units: [, workers] }) {
      await workers?.kill();
      if (workers) workers.isTarget = false;
    },
    async end({ units: [, workers] }) {
      await workers?.start();
      if (workers) workers.isTarget = true;
    },
  },
  {
    name: 'daemon-restarts',
    what: 'the daemon is killed three seconds after each start, and started again',
    alert: 'TallyhookRestarts',
    ready: undefined,
    line: undefined,
    lastsS: 120,
    begin: async (scene) => disturb((signal) => restartAgain(scene, signal)),
    end: calm,
  },
  {
    name: 'heap-limit',
    what: 'the heap of the daemon is too small to start (--max-old-space-size=12)',
    alert: 'TallyhookDown',
    ready: 0,
    line: /heap out of memory/,
    lastsS: 45,
    begin: async (scene) => disturb((signal) => startSmall(scene, signal)),
    async end({ units: [unit] }) {
      await calm();
      await unit.start();
    },
  },
  {
    name: 'delivery-killed',
    what: 'the process of webhooks is killed at each start',
    alert: 'TallyhookDeliveryProcessDown',
    ready: 200,
    line: /the delivery process ended; it is started again/,
    lastsS: 60,
    begin: async (scene) => disturb((signal) => killDelivery(scene, signal)),
    end: calm,
  },
  {
    name: 'receiver-down',
    what: 'the receiver refuses connections',
    alert: 'TallyhookWebhooksLate',
    ready: 200,
    line: undefined,
    lastsS: 30,
    begin: ({ toReceiver }) => toReceiver.cut(),
    end: ({ toReceiver }) => toReceiver.restore(),
  },
];

async function restartAgain({ units: [unit] }: Scene, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await unit.kill();
    await unit.start();
    await pause(3_000, signal);
  }
}

async function startSmall({ units: [unit] }: Scene, signal: AbortSignal): Promise<void> {
  await unit.stop();
  while (!signal.aborted) {
    await unit.start({ flags: ['--max-old-space-size=12'] }).catch(() => {});
    await pause(1_000, signal);
  }
}

async function killDelivery({ units: [unit] }: Scene, signal: AbortSignal): Promise<void> {
  for (let starts = 1; !signal.aborted; starts++) {
    const pid = await unit.process?.deliveryPid(starts).catch(() => undefined);
    if (pid !== undefined && !signal.aborted) process.kill(pid, 'SIGKILL');
  }
}
