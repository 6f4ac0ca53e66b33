/** Spans of OpenTelemetry; without its SDK they are empty. */
import {
  type Attributes,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

const tracer = trace.getTracer('tallyhook');
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

interface SpanOptions {
  kind?: keyof typeof KINDS;
  attributes?: Attributes;
  /** Headers of a request from outside, whose `traceparent` names the parent span. */
  from?: Record<string, unknown>;
}

/**
 * Does work in a span, a child of the one around it, which ends with the work. An error is recorded
 * by its name alone, since its message may hold what must not leave the process, and is thrown on.
 */
export function inSpan<T>(
  name: string,
  { kind = 'internal', attributes = {}, from }: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const parent = from ? propagation.extract(context.active(), from) : context.active();
  const options = { kind: KINDS[kind], attributes };
  return tracer.startActiveSpan(name, options, parent, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      const message = error instanceof Error ? error.name : 'Error';
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** The headers that name the span around the call as the parent; none without an SDK. */
export function traceHeaders(): [string, string][] {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return Object.entries(headers);
}
