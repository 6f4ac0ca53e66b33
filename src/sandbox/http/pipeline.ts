/**
 * From a request to its response: time, request log, faults, rate limit, maintenance, the
 * endpoint, the store. It runs synchronously, so requests are isolated from each other and a
 * response's changes are in the store before it is sent.
 */
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Answer, Call } from '../endpoints/call.ts';
import { absentAnswer, internalError, Refusal } from '../endpoints/errors.ts';
import { maintenanceAnswer, maintenanceStatus } from '../endpoints/maintenance.ts';
import type { Route } from '../endpoints/routes.ts';
import { type PlannedResponse, planResponse, takeFault, throttled } from '../faults/faults.ts';
import type { Received, RequestLog } from '../state/request-log.ts';
import type { World } from '../world.ts';

/** Processes a call; the route is undefined for a path that the service does not have. */
export type Pipeline = (call: Call, route: Route | undefined) => PlannedResponse;

export function makePipeline(world: World, requests: RequestLog, log?: Log): Pipeline {
  function limited(call: Call): Answer | undefined {
    const { rate_per_s, rate_burst, retry_after } = world.switches();
    if (rate_per_s === null) return undefined;
    const waitMs = world.rateLimit.take(world.now(), rate_per_s, rate_burst);
    if (waitMs === 0) return undefined;
    const retry_after_s = Math.ceil(waitMs / 1000);
    return throttled(world, call, { status: 429, retry_after, retry_after_s });
  }

  function handled(call: Call, route: Route | undefined): Answer {
    try {
      if (!route) return absentAnswer(call.family, world.switches());
      if (route.name !== 'maintenance' && maintenanceStatus(world) === 'INACTIVE') {
        return maintenanceAnswer(world, call.family);
      }
      return route.handle(world, call);
    } catch (error) {
      if (error instanceof Refusal) return error.answer(world.switches());
      log?.error({ err: error, endpoint: call.endpoint }, 'sandbox endpoint failed');
      return internalError(call.family, world.switches());
    }
  }

  function apply(call: Call, route: Route | undefined, received: Received): Answer {
    const before = world.effectsApplied();
    const answer = limited(call) ?? handled(call, route);
    received.applied = world.effectsApplied() > before;
    return answer;
  }

  return (call, route) => {
    world.advance();
    const { method, path, endpoint, body } = call;
    const query = call.query.toString();
    const received = requests.add({ at: world.now(), method, path, query, endpoint, body });
    const fault = takeFault(world, call);
    received.fault = fault?.fault.kind ?? null;
    const response = planResponse(world, call, fault, (met) => apply(met, route, received));
    if (response.sent !== 'nothing') received.status = response.answer.status;
    world.commit();
    return response;
  };
}
