import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from '../random.ts';
import { createBatch, renderBatch } from './batch.ts';
import type { ProfileSpace } from './profile-space.ts';
import type { ScheduledSource } from './scheduled-files.ts';
import { Versions } from './versions.ts';

export interface ScheduledPage extends ScheduledSource {
  readonly url: string;
}

const keys = 500;
const rows = 1_000;

/** A page of a web server of this machine, with an ETag. It is always there. */
export async function openScheduledPage(space: ProfileSpace, random: Random): Promise<ScheduledPage> {
  const versions = new Versions();
  let page = { etag: '', bytes: Buffer.alloc(0) };
  const server = createServer((request, response) => {
    const { etag, bytes } = page;
    const isKnown = request.headers['if-none-match'] === etag;
    response.writeHead(isKnown ? 304 : 200, { etag, 'content-type': 'application/x-ndjson' });
    response.end(isKnown ? undefined : bytes);
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${space.prefix}page.ndjson`;
  return {
    url,
    versions,
    async change() {
      const mark = `${space.prefix}${versions.size}`;
      const batch = createBatch(space, 'ndjson', { random, rows: random.integer(1, rows), keys, mark });
      const etag = `"${mark}"`;
      versions.add(url, JSON.stringify({ etag, lastModified: null }), batch);
      page = { etag, bytes: renderBatch(batch, { gzip: false }).bytes };
      versions.stands(url);
    },
  };
}
