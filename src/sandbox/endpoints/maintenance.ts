/**
 * Maintenance (section 4.4, row 6, and 2.7). One window, and the clock decides: READY before its
 * start, INACTIVE within it, ACTIVE after it or without one.
 */

import { wallText } from '../state/wall-time.ts';
import type { World } from '../world.ts';
import { type Answer, type Family, success } from './call.ts';
import { failure } from './refusals.ts';

export type MaintenanceStatus = 'READY' | 'ACTIVE' | 'INACTIVE';

export function maintenanceStatus(world: World): MaintenanceStatus {
  const { window } = world.settings();
  if (!window || (window.end !== null && world.now() >= window.end)) return 'ACTIVE';
  return world.now() < window.start ? 'READY' : 'INACTIVE';
}

/** GET /v1/system/maintenance */
export function readMaintenance(world: World): Answer {
  const status = maintenanceStatus(world);
  const { window } = world.settings();
  if (status === 'ACTIVE' || !window) {
    return success({ status, start: null, end: null, message: null });
  }
  const { time_zone } = world.switches();
  const text = (at: number | null) => (at === null ? null : wallText(at, time_zone));
  return success({
    status,
    start: text(window.start),
    end: text(window.end),
    message: window.message,
  });
}

/** What every other endpoint answers while the service is down. */
export function maintenanceAnswer(world: World, family: Family): Answer {
  const { window } = world.settings();
  return failure(family, 503, `The service is under maintenance. ${window?.message ?? ''}`.trim());
}
