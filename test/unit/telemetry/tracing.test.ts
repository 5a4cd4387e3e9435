import { expect, test } from 'vitest';
import { readTraceparent, writeTraceparent } from '../../../src/domain/trace.ts';
import { summaryOf } from '../../../src/telemetry/open-telemetry.ts';
import { openActiveSpans, unsupportedTraceSettings, wantsTraces } from '../../../src/telemetry/tracing.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };

test.each([
  [{}, false],
  [endpoint, true],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' }, true],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
  [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, false],
  [{ ...endpoint, OTEL_SDK_DISABLED: 'TRUE' }, false],
])('of the variables %o traces are asked for: %s', (environment, wanted) => {
  expect(wantsTraces(environment)).toBe(wanted);
  expect(openActiveSpans(environment) !== null).toBe(wanted);
});

test.each([
  [endpoint, []],
  [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: ' ', OTEL_PROPAGATORS: 'tracecontext,baggage' }, []],
  [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, ['OTEL_EXPORTER_OTLP_PROTOCOL=grpc']],
  [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, []],
  [
    { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf'],
  ],
  [{ ...endpoint, OTEL_PROPAGATORS: 'b3' }, ['OTEL_PROPAGATORS=b3']],
  [{ OTEL_TRACES_EXPORTER: 'otlp,zipkin' }, ['OTEL_TRACES_EXPORTER=otlp,zipkin']],
  [{ OTEL_SDK_DISABLED: 'true', OTEL_TRACES_EXPORTER: 'console' }, []],
])('of the variables %o what is not supported is said: %j', (environment, beginnings) => {
  const sentences = unsupportedTraceSettings(environment);
  expect(sentences).toEqual(beginnings.map((text) => expect.stringMatching(`^${text}\\b`)));
});

test('a traceparent is read as it is written; what is none, or says nothing, is no parent', () => {
  const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', isSampled: true };
  expect(readTraceparent(writeTraceparent(span))).toEqual(span);
  const zeros = `00-${'0'.repeat(32)}-b7ad6b7169203331-01`;
  for (const text of [null, undefined, '', 'x', zeros, `ff${writeTraceparent(span).slice(2)}`]) {
    expect(readTraceparent(text)).toBeNull();
  }
});

test.each([
  [{ name: 'insert-events', text: 'insert into x' }, 'insert-events'],
  ['begin; set local synchronous_commit = off', 'BEGIN'],
  ['copy users (user_id) from stdin', 'COPY users'],
  ['select "a" from "sluice"."loads" where x = $1', 'SELECT sluice.loads'],
  ['with a as (select 1) insert into loads values ($1)', 'SELECT loads'],
  [{ text: `copy (select metadata ->> 'from secret' from "users") to stdout` }, 'COPY export'],
  [7, 'statement'],
])('the span of the statement %o is called %s, and has nothing of its values', (statement, name) => {
  expect(summaryOf(statement)).toBe(name);
});
