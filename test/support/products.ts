import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { startWebServer, type WebServer } from './web-server.ts';
import { zipFile } from './zip-file.ts';

/** An event as its product has it. */
export interface ProductEvent {
  readonly id: string;
  readonly user: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly at: string;
  /** When the product received it; by default at once. */
  readonly receivedAt?: string;
  /** A JSON text. */
  readonly properties?: string;
}

/** A real server with the export APIs of Mixpanel, Amplitude and PostHog, which answers as their documentation says. */
export interface ProductServer extends WebServer {
  readonly events: ProductEvent[];
  /** The days that were asked for, in order; of PostHog with the number of each page. */
  readonly asked: string[];
  /** What it knows: events received later are not there yet. */
  now: string;
  /** Answers the next requests instead, each once; null: one is answered as usual. */
  readonly instead: (((request: IncomingMessage, response: ServerResponse) => void) | null)[];
  /** Rows of a page of PostHog, whatever the query asks for. */
  mostRows: number;
  /** Events that an export of Amplitude may have. */
  mostEvents: number;
}

export const productKey = 'key-geheim';
export const productSecret = 'secret-geheim';

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
const dayOf = (at: string) => at.slice(0, 10);

export async function startProducts(): Promise<ProductServer> {
  const web = await startWebServer('http');
  const server: ProductServer = {
    ...web,
    events: [],
    asked: [],
    instead: [],
    now: '9',
    mostRows: 50_000,
    mostEvents: 50_000,
  };
  const known = () => server.events.filter(({ at, receivedAt = at }) => receivedAt < server.now);
  const answer =
    (authorization: string, how: (request: IncomingMessage, url: URL, response: ServerResponse) => void) =>
    (request: IncomingMessage, response: ServerResponse): void => {
      const url = new URL(request.url ?? '', server.url);
      const instead = server.instead.shift() ?? null;
      if (instead !== null) return void instead(request, response);
      if (request.headers.authorization !== authorization) return void response.writeHead(401).end();
      how(request, url, response);
    };
  server.answer(
    '/api/2.0/export',
    answer(basic(productKey, productSecret), (request, url, response) => {
      const [from, to] = [url.searchParams.get('from_date') ?? '', url.searchParams.get('to_date') ?? ''];
      server.asked.push(from);
      if (url.searchParams.get('project_id') !== '7' || from > to) return void response.writeHead(400).end();
      const found = known().filter(({ at }) => from <= dayOf(at) && dayOf(at) <= to);
      const text = found.map(mixpanelLine).join('');
      const isPacked = text.length > 1_400 && request.headers['accept-encoding']?.includes('gzip') === true;
      response.writeHead(200, {
        'content-type': 'text/plain',
        ...(isPacked && { 'content-encoding': 'gzip' }),
      });
      response.end(isPacked ? gzipSync(text) : text);
    }),
  );
  server.answer(
    '/api/2/export',
    answer(basic(productKey, productSecret), (_, url, response) => {
      const [start, end] = [url.searchParams.get('start') ?? '', url.searchParams.get('end') ?? ''];
      const hourOf = ({ at, receivedAt = at }: ProductEvent) =>
        `${receivedAt.slice(0, 13).replaceAll('-', '')}`;
      const hour = start === end ? start.slice(8) : '';
      server.asked.push(`${start.slice(0, 4)}-${start.slice(4, 6)}-${start.slice(6, 8)}${hour}`);
      const found = known().filter((event) => start <= hourOf(event) && hourOf(event) <= end);
      if (found.length === 0 || found.length > server.mostEvents)
        return void response.writeHead(found.length === 0 ? 404 : 400).end();
      const files = [...new Set(found.map(hourOf))].map((hour) => ({
        name: `7/7_${hour}#0.json.gz`,
        data: gzipSync(
          found
            .filter((event) => hourOf(event) === hour)
            .map(amplitudeLine)
            .join(''),
        ),
      }));
      response.writeHead(200, { 'content-type': 'application/zip' }).end(zipFile(files));
    }),
  );
  server.answer(
    '/api/projects/7/query/',
    answer(`Bearer ${productKey}`, (request, _, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const { query, refresh } = JSON.parse(Buffer.concat(pieces).toString());
        const { since = '', until = '', after = '' } = query.values as Record<string, string>;
        server.asked.push(`${since.slice(0, 10)}${after === '' ? '' : ' again'}`);
        if (query.kind !== 'HogQLQuery' || refresh !== 'force_blocking')
          return void response.writeHead(400).end();
        const limit = Number(/limit (\d+)$/.exec(query.query)?.[1]);
        const rows = known()
          .map(({ id, user, at, properties = '{}' }) => [
            id,
            'Paid',
            user,
            `${at.slice(0, 23).replace('T', ' ')}000`,
            properties,
          ])
          .filter(([id = '', , , at = '']) => at >= since && at < until && (at > since || id > after))
          .sort(([a = '', , , x = ''], [b = '', , , y = '']) => (x + a < y + b ? -1 : 1));
        const results = rows.slice(0, Math.min(limit, server.mostRows));
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ columns: [], results, hasMore: results.length < rows.length }));
      });
    }),
  );
  return server;
}

function mixpanelLine({ id, user, at, properties = '{}' }: ProductEvent): string {
  const known = JSON.stringify({ time: Date.parse(at), distinct_id: user, $insert_id: id });
  const own = properties === '{}' ? '' : `,${properties.slice(1, -1)}`;
  return `{"event":"Paid","properties":${known.slice(0, -1)}${own}}}\n`;
}

function amplitudeLine({ id, user, at, properties = '{}' }: ProductEvent): string {
  const known = JSON.stringify({
    event_type: 'Paid',
    user_id: user,
    event_time: at.slice(0, 23).replace('T', ' '),
    $insert_id: id,
  });
  return `${known.slice(0, -1)},"event_properties":${properties}}\n`;
}
