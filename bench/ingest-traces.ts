import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { measure } from './ingest-run.ts';
import { targetOf } from './ingest-servers.ts';
import { startService } from './service.ts';

const turns = 5;
const connections = 64;

/** What traces cost the server: none, a hundredth of them, all of them; a service each, in turn. */
export async function compareTraces(seconds: number, print: (line: string) => void): Promise<void> {
  const collector = createServer((request, response) => {
    request.resume().once('end', () => response.setHeader('content-type', 'application/json').end('{}'));
  });
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const { port } = collector.address() as AddressInfo;
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
  const hundredth = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' };
  const cases = { off: {}, 'a hundredth': { ...on, ...hundredth }, all: on };
  const services = await Promise.all(
    Object.entries(cases).map(async ([traces, settings]) => {
      const service = await startService({ WORKERS: '0', ...settings });
      const client = new pg.Client({ connectionString: service.databaseUrl });
      await client.connect();
      await client.query('select sluice.ensure_events_partition(now())');
      return { traces, service, client };
    }),
  );
  try {
    print('| traces | turn | req/s | p50, ms | p99, ms | server CPU, µs per record | peak RSS, MiB |');
    print('|---|---|---|---|---|---|---|');
    for (let turn = 1; turn <= turns; turn++)
      for (const { traces, service, client } of services) {
        const run = { kind: 'track', server: 'sluice', connections, warmUpSeconds: 1, seconds } as const;
        const { perSecond, p50, p99, ...more } = await measure(client, service, targetOf(service), run);
        const cells = [Math.round(perSecond), p50.toFixed(2), p99.toFixed(2)];
        print(`| ${[traces, turn, ...cells, more.cpuMicrosPerRecord, more.peakMib].join(' | ')} |`);
      }
  } finally {
    for (const { service, client } of services) {
      await client.end();
      await service.stop();
    }
    collector.closeAllConnections();
    collector.close();
  }
}
