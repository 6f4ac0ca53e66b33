/** Writes of a sample app through the gateway, so that a new installation shows data. */
import type { Gateway } from '../../gateway/gateway.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import type { Service } from '../service.ts';
import type { Worker } from './schedule.ts';

const INTERVAL_MS = 20_000;
const OWNER = 'sample';

export function sampleWorker(
  draw: NonNullable<Service['sampleWrite']>,
  { gateway, log }: { gateway: Pick<Gateway, 'write'>; log: Log },
): Worker {
  return {
    name: 'sample',
    intervalMs: INTERVAL_MS,
    async pass() {
      const write = draw();
      try {
        if (write) await gateway.write({ ...write, owner: OWNER });
      } catch (error) {
        // Such as while writes are frozen.
        if (!(error instanceof Failure)) throw error;
        log.debug({ code: error.code }, 'a sample write was refused');
      }
      return undefined;
    },
  };
}
