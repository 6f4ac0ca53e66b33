/**
 * Maintenance (sections 2.7 and 4.4, row 6): READY before the start of the window, INACTIVE within
 * it, ACTIVE after it or without one.
 */
import type { World } from '../world.ts';
import { type Answer, type Family, success, timestampText } from './call.ts';
import { failure } from './errors.ts';

type MaintenanceStatus = 'READY' | 'ACTIVE' | 'INACTIVE';

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
  const text = (at: number | null) => (at === null ? null : timestampText(at, time_zone));
  return success({
    status,
    start: text(window.start),
    end: text(window.end),
    message: window.message,
  });
}

/** The response of every other endpoint while the service is down. */
export function maintenanceAnswer(world: World, family: Family): Answer {
  const { window } = world.settings();
  return failure(family, 503, `The service is under maintenance. ${window?.message ?? ''}`.trim());
}
