import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { collidingKeys } from '../support/files/colliding-keys.ts';
import { blankRecords } from '../support/files/hostile-files.ts';
import { peakBytes } from '../support/servers/processes.ts';
import { type Api, callApi, onSite, type Site } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** A harmful request by a caller with a valid key. The service has one server and one worker. */
interface Attack {
  readonly name: string;
  readonly status: number | readonly number[];
  /** Expected status of the job after its end. Missing if the request does not start a job. */
  readonly end?: 'completed' | 'failed';
  readonly send: (api: Api) => Promise<Response>;
}

const liveWithinMs = 1_000;
const importWithinMs = 10_000;
const endsWithinMs = 60_000;
/**
 * Maximum number of measurements. If responses are late, the test measures again, because other
 * processes may have caused the delay.
 */
const attempts = 2;
const pollMs = 50;

const MiB = 1 << 20;
/** Maximum memory of the server in MiB. */
const mostMib = 400;
const brackets = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const csv = { 'content-type': 'text/csv' };
const ndjson = { 'content-type': 'application/x-ndjson' };
const json = { 'content-type': 'application/json' };

const upload = (body: string | Buffer, headers: Record<string, string>) => (api: Api) =>
  api.fetch('/v1/imports', {
    method: 'POST',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers,
  });

function mapped(api: Api): Promise<Response> {
  const body = new FormData();
  for (const part of numbers(26)) {
    body.append(
      'map',
      numbers(5_000)
        .map((n) => `h${part}x${n}=p`)
        .join(','),
    );
  }
  body.append(
    'file',
    new Blob([
      `user_id,${numbers(9_999)
        .map((n) => `c${n}`)
        .join(',')}\nu\n`,
    ]),
    'users.csv',
  );
  return api.fetch('/v1/imports', { method: 'POST', body });
}

function packedForm(): Buffer {
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\nuser_id\n';
  return gzipSync(
    Buffer.concat([Buffer.from(head), Buffer.alloc(64 * MiB, 'aaa\n'), Buffer.from('\r\n--b--\r\n')]),
  );
}

const attacks: readonly Attack[] = [
  {
    name: 'an export that leaves out a property of many stars',
    status: 201,
    end: 'completed',
    send: (api) =>
      api.fetch('/api/v1/analytics/exports', {
        method: 'POST',
        body: JSON.stringify({
          format: 'csv',
          event_type: ['users'],
          exclusions: `property:${'*a'.repeat(30)}${'*'.repeat(60)}!`,
        }),
        headers: json,
      }),
  },
  {
    name: 'a deletion of ids that are nothing but delimiters',
    status: 202,
    end: 'completed',
    send: (api) =>
      api.fetch('/v1/users', {
        method: 'DELETE',
        body: JSON.stringify({ users: numbers(235).map((n) => `${','.repeat(20 + n)};`) }),
        headers: json,
      }),
  },
  {
    name: '8 KB of gzip that are 8 MB of blank lines',
    status: 400,
    send: upload(gzipSync(Buffer.alloc(8 * MiB, '\n')), csv),
  },
  {
    name: 'a CSV of ids that an unseeded hash sends to one bucket',
    status: 200,
    end: 'completed',
    send: upload(`user_id\n${collidingKeys(60_000).join('\n')}\n`, csv),
  },
  {
    name: 'ten records 500 000 levels deep',
    status: 200,
    end: 'failed',
    send: upload(`{"user_id":"u","a":${brackets}}\n`.repeat(10), ndjson),
  },
  {
    name: 'a body 500 000 levels deep',
    status: 400,
    send: (api) =>
      api.fetch('/v1/identify', { method: 'POST', body: `{"user_id":"u","a":${brackets}}`, headers: json }),
  },
  {
    name: 'records of 70 000 properties and numbers of 60 000 digits',
    status: 200,
    end: 'failed',
    send: upload(
      `{"user_id":"u",${numbers(70_000)
        .map((n) => `"p${n}":1`)
        .join()}}\n{"user_id":"v","n":${'1'.repeat(60_000)}}\n`,
      ndjson,
    ),
  },
  {
    name: '300 000 lines that are no record',
    status: 200,
    end: 'failed',
    send: upload(`user_id,name\n${'x\n'.repeat(300_000)}`, csv),
  },
  {
    name: 'a quoted cell of 80 MB that is closed',
    status: 200,
    end: 'completed',
    send: (api) => upload(`user_id,name\na,Ada\nb,"${'x\n'.repeat(40 * MiB)}"\n`, csv)(api),
  },
  {
    name: 'causes of records that are 65 000 blanks',
    status: [200],
    async send(api) {
      const packed = { ...ndjson, 'content-encoding': 'gzip' };
      const { job_id: jobId } = (await (await upload(blankRecords(), packed)(api)).json()) as {
        job_id: string;
      };
      await ended(api, jobId);
      return api.fetch(`/v1/background_jobs/${jobId}/rejects?group_by=cause`);
    },
  },
  { name: 'a map of 130 000 columns', status: 400, send: mapped },
  {
    name: 'gzip around a form that grows a thousand times over',
    status: 413,
    send: upload(packedForm(), {
      'content-type': 'multipart/form-data; boundary=b',
      'content-encoding': 'gzip',
    }),
  },
];

// proves: neighbours
test('during any attack of one environment, liveness answers within 1 s and the import of another ends within 10 s', async () => {
  await onSite({ queue: 'postgres', settings: { CHUNK_BYTES: '2m' } }, async (site) => {
    const [api] = await Promise.all([site.serve(), site.work()]);
    const peak = () => peakBytes(api.process.pid) / MiB;
    const neighbour = await addNeighbour(site, api);
    // The first attack needs a stored property with a long name. The second attack needs rejects
    // that contain many commas.
    const letters = await api.upload(Buffer.from(`user_id,${'a'.repeat(200)}\nu,x\n`));
    const commas = await api.upload(Buffer.from(`user_id,a\n${`${','.repeat(60_000)}x\n`.repeat(20)}`));
    expect(await ended(api, letters)).toBe('completed');
    // This load fails because all its records are refused. The records are stored as rejects.
    expect(await ended(api, commas)).toBe('failed');

    for (const attack of attacks) {
      const sent = attack.send(api);
      let late: string | null = '';
      for (let attempt = 0; attempt < attempts && late !== null; attempt++)
        late = await whatIsLate(api, neighbour);
      expect(late, attack.name).toBeNull();
      const answer = await sent;
      const { job_id: jobId } = (await answer.json()) as { job_id?: string };
      expect([attack.status].flat(), attack.name).toContain(answer.status);
      const end = attack.end === undefined ? undefined : await ended(api, jobId ?? '');
      expect([attack.name, end]).toEqual([attack.name, attack.end]);
      expect(peak(), attack.name).toBeLessThan(mostMib);
    }
  });
});

async function addNeighbour(site: Site, { process, url }: Api): Promise<Api> {
  const { key } = await site.addEnvironment('neighbour');
  return callApi(process, url, key);
}

/**
 * Loads a small file, and measures how fast the service responds in the meantime. Returns the name
 * of what took too long, or `null` if nothing did.
 */
async function whatIsLate(api: Api, neighbour: Api): Promise<string | null> {
  let slowestMs = 0;
  let isOver = false;
  const looking = (async () => {
    while (!isOver) {
      const before = performance.now();
      await (await api.fetch('/health/live')).arrayBuffer();
      slowestMs = Math.max(slowestMs, performance.now() - before);
      await sleep(pollMs);
    }
  })();
  const before = performance.now();
  try {
    const jobId = await neighbour.upload(Buffer.from(`user_id,name\nn${before},N\n`));
    await ended(neighbour, jobId);
  } finally {
    isOver = true;
    await looking;
  }
  const importMs = performance.now() - before;
  if (slowestMs > liveWithinMs) return `liveness took ${Math.round(slowestMs)} ms`;
  return importMs > importWithinMs ? `the import took ${Math.round(importMs)} ms` : null;
}

async function ended(api: Api, jobId: string): Promise<string> {
  return waitFor(
    `job ${jobId} to end`,
    async () => {
      const job = (await (await api.fetch(`/v1/background_jobs/${jobId}`)).json()) as {
        status: string;
        end_time: string | null;
      };
      return job.end_time === null ? null : job.status;
    },
    { timeoutMs: endsWithinMs },
  );
}
