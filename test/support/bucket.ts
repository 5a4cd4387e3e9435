import { mkdir, mkdtemp, rm, utimes } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';

/** A real server that speaks S3, with one bucket. */
export interface Bucket {
  readonly endpoint: string;
  /** Changed last at `at`; S3 tells seconds only. */
  put(key: string, content: string | Uint8Array, at: string): Promise<void>;
  stop(): Promise<void>;
}

/** s3rver has no types; this is what is used of it. */
type S3rver = new (
  options: object,
) => {
  readonly httpServer: Server;
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
};

export async function startBucket(name: string): Promise<Bucket> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bucket-'));
  await mkdir(join(directory, name));
  const server = new (createRequire(import.meta.url)('s3rver') as S3rver)({
    ...{ address: '127.0.0.1', port: 0, silent: true, directory },
    vhostBuckets: false,
  });
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
  return {
    endpoint,
    async put(key, content, at) {
      await client.send(new PutObjectCommand({ Bucket: name, Key: key, Body: content }));
      await utimes(join(directory, name, `${key}._S3rver_object`), new Date(at), new Date(at));
    },
    async stop() {
      client.destroy();
      server.httpServer.closeAllConnections();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
