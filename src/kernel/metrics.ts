/** Measurements for Prometheus. The only importer of prom-client; a daemon has one registry. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type Metrics = ReturnType<typeof makeMetrics>;

/** The registry with every measurement we publish; names end in their unit. */
export function makeMetrics() {
  const registers = [new Registry()];
  const registry = registers[0] as Registry;
  collectDefaultMetrics({ register: registry });
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter<L>({ name: `tallyhook_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge<L>({ name: `tallyhook_${name}`, help, labelNames, registers });
  const seconds = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Histogram<L>({
      name: `tallyhook_${name}_seconds`,
      help,
      labelNames,
      registers,
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    });
  return {
    text: () => registry.metrics(),
    contentType: registry.contentType,
    operations: counter('operations_total', 'Writes by how the service answered', [
      'kind',
      'state',
    ]),
    gatewaySeconds: seconds('gateway_request', 'Time a gateway call took, service included', [
      'kind',
    ]),
    upstreamRequests: counter('upstream_requests_total', 'Requests sent to the service', [
      'class',
      'result',
    ]),
    upstreamRate: gauge(
      'upstream_learned_rate_per_second',
      'Requests per second that the control of looks allows all daemons together',
    ),
    observations: counter('polls_total', 'Looks at wallets and tokens', ['kind', 'result']),
    attempts: counter('webhook_attempts_total', 'Webhook attempts by verdict', ['verdict']),
    deliverySeconds: seconds('webhook_delivery', 'Time from commit of the event to its delivery'),
    passSeconds: seconds('pass', 'Time one pass of a worker took', ['worker']),
    passFailures: counter('pass_failures_total', 'Passes that ended in an error', ['worker']),
    frozen: gauge('writes_frozen', '1 while people have stopped all writes'),
    backlog: gauge('backlog', 'Rows waiting in each stage', ['stage']),
  };
}
