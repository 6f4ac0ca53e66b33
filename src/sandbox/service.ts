/**
 * From a received request to what goes back: time, the log, faults, limits, maintenance, the rule
 * of the endpoint, and the journal, in this order. All of it is one step without waiting, so
 * requests never see each other half done; what it answers is in the journal before it leaves.
 */
import type { Log } from '../kernel/log.ts';
import type { Received, RequestLog } from './control/request-log.ts';
import type { Answer, Call } from './endpoints/call.ts';
import { maintenanceAnswer, maintenanceStatus } from './endpoints/maintenance.ts';
import { absentAnswer, brokenAnswer, Refusal } from './endpoints/refusals.ts';
import type { Route } from './endpoints/routes.ts';
import { type Delivery, takeFault, throttled, underFault } from './faults/faults.ts';
import type { World } from './world.ts';

/** Answers a call; the route is undefined for a path that the service does not have. */
export type Service = (call: Call, route: Route | undefined) => Delivery;

export function makeService(world: World, requests: RequestLog, log?: Log): Service {
  function limited(call: Call): Answer | undefined {
    const { rate_per_s, rate_burst, retry_after } = world.switches();
    if (rate_per_s === null) return undefined;
    const waitMs = world.rateLimit.take(world.now(), rate_per_s, rate_burst);
    if (waitMs === 0) return undefined;
    const retry_after_s = Math.ceil(waitMs / 1000);
    return throttled(world, call, { status: 429, retry_after, retry_after_s });
  }

  function ruled(call: Call, route: Route | undefined): Answer {
    try {
      if (!route) return absentAnswer(call.family, world.switches());
      if (route.name !== 'maintenance' && maintenanceStatus(world) === 'INACTIVE') {
        return maintenanceAnswer(world, call.family);
      }
      return route.handle(world, call);
    } catch (error) {
      if (error instanceof Refusal) return error.answer(world.switches());
      log?.error({ err: error, endpoint: call.endpoint }, 'sandbox endpoint broke');
      return brokenAnswer(call.family, world.switches());
    }
  }

  function answered(call: Call, route: Route | undefined, received: Received): Answer {
    const before = world.effectsApplied();
    const answer = limited(call) ?? ruled(call, route);
    received.applied = world.effectsApplied() > before;
    return answer;
  }

  return function serve(call, route) {
    world.advance();
    const { method, path, endpoint, body } = call;
    const query = call.query.toString();
    const received = requests.begin({ at: world.now(), method, path, query, endpoint, body });
    const fault = takeFault(world, call);
    received.fault = fault?.fault.kind ?? null;
    const delivery = underFault(world, call, fault, (met) => answered(met, route, received));
    if (delivery.sent !== 'nothing') received.status = delivery.answer.status;
    world.commit();
    return delivery;
  };
}
