import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, startService } from './cli.ts';
import { jobEnded, usersCsv } from './service.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly Attribute[];
}

interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

/** A collector: OTLP over HTTP, as JSON. */
const spans: Span[] = [];
const resources: Attribute[] = [];
const tokens = new Set<string | undefined>();
const collector = createServer((request, response) => {
  tokens.add(request.headers['x-token'] as string | undefined);
  void json(request).then((body) => {
    for (const { resource, scopeSpans } of (body as Sent).resourceSpans) {
      resources.push(...resource.attributes);
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    }
    response.setHeader('content-type', 'application/json').end('{}');
  });
});
let endpoint = '';

beforeAll(async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
});
afterAll(() => {
  collector.closeAllConnections();
  collector.close();
});

const ofTrace = (traceId: string): Span[] => spans.filter((span) => span.traceId === traceId);
const childOf = (parent: Span | undefined, name: string | RegExp): Span | undefined =>
  spans.find(({ parentSpanId, name: own }) => parentSpanId === parent?.spanId && own.match(name) !== null);

// proves: tracing
test('an upload is one trace from the request to its chunk and its statements, a protocol that is not supported is warned about once, a collector that dies harms nothing, and what is left is sent at the stop', async () => {
  const service = await startService(await preparedDataDir(), {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-token=secret-token',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    LOG_LEVEL: 'info',
    CHUNK_BYTES: '256k',
  });
  const caller = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
  const send = (path: string, type: string, body: string, trace: string) =>
    fetch(new URL(path, service.url), {
      method: 'POST',
      headers: {
        ...{ authorization: `Token ${service.key}`, 'content-type': type },
        traceparent: `00-${trace}-${caller.spanId}-01`,
      },
      body,
    });

  // Of several chunks, which the workers do.
  const uploaded = await send('/v1/imports', 'text/csv', usersCsv(40_000), caller.traceId);
  const { job_id: jobId } = (await uploaded.json()) as { readonly job_id: string };
  await jobEnded(service.url, service.key, jobId);
  const tracked = await send(
    '/v1/track',
    'application/json',
    '{"user_id":"secret-user","event_name":"x"}',
    'c'.repeat(32),
  );
  expect(tracked.status).toBe(202);
  const exported = await send(
    '/api/v1/analytics/exports',
    'application/json',
    '{"event_type":"users","user_ids":["secret-user"]}',
    'd'.repeat(32),
  );
  expect(exported.status).toBe(201);

  await waitFor('the spans', () => {
    const names = (trace: string) => new Set(ofTrace(trace).map(({ name }) => name));
    return (
      names(caller.traceId).has('process finish') &&
      names('c'.repeat(32)).has('POST /v1/track') &&
      names('d'.repeat(32)).has('process export')
    );
  });
  const request = ofTrace(caller.traceId).find(({ name }) => name === 'POST /v1/imports');
  expect(request).toMatchObject({ parentSpanId: caller.spanId, kind: 2 });
  expect(childOf(request, /^INSERT .*loads/)).toMatchObject({ kind: 3 });
  const chunk = childOf(request, 'process chunk');
  expect(chunk).toMatchObject({ kind: 5 });
  expect(childOf(chunk, /^COPY /)).toMatchObject({ kind: 3 });
  const track = ofTrace('c'.repeat(32)).find(({ name }) => name === 'POST /v1/track');
  expect(childOf(childOf(track, 'commit window'), 'insert-events')).toMatchObject({ kind: 3 });
  expect(
    childOf(
      ofTrace('d'.repeat(32)).find(({ name }) => name.startsWith('POST ')),
      'process export',
    ),
  ).toBeDefined();
  expect(ofTrace('d'.repeat(32)).map(({ name }) => name)).toContain('COPY export');
  // The caller's token goes to the collector and nowhere else; no id of a person does.
  expect([...tokens]).toEqual(['secret-token']);
  expect(JSON.stringify(spans)).not.toMatch(/secret|usr_|user_\d/);
  expect(resources).toContainEqual({ key: 'service.name', value: { stringValue: 'sluice' } });
  expect(resources).toContainEqual({ key: 'deployment.environment.name', value: { stringValue: 'test' } });
  const accepted = service.stderr.split('\n').find((line) => line.includes('load accepted'));
  expect(JSON.parse(accepted ?? '{}')).toMatchObject({ trace_id: caller.traceId, span_id: request?.spanId });

  // Once, however many processes there are.
  expect(service.stderr.match(/OTEL_EXPORTER_OTLP_PROTOCOL=http\/protobuf is not supported/g)).toHaveLength(
    1,
  );

  collector.closeAllConnections();
  collector.close();
  for (let n = 0; n < 3; n++) {
    const answer = await send(
      '/v1/track',
      'application/json',
      '{"user_id":"u","event_name":"x"}',
      'e'.repeat(32),
    );
    expect(answer.status).toBe(202);
  }
  const stoppedAt = performance.now();
  service.signal('SIGTERM');
  expect(await service.finished).toMatchObject({ code: 0 });
  expect(performance.now() - stoppedAt).toBeLessThan(10_000);
});
