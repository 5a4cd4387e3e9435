import { expect } from 'vitest';
import type { TestServer } from './http.ts';

/** Returns the values of a page in the Prometheus text format, by name and labels. */
export function readSamples(page: string): ReadonlyMap<string, number> {
  const samples = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    samples.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** Returns the metrics page of a server and its values. */
export async function scrape(server: TestServer) {
  const response = await server.fetch('/metrics', { key: null });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  const page = await response.text();
  return { page, samples: readSamples(page) };
}
