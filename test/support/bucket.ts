import { mkdir, mkdtemp, rm, utimes } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { listInPages, type S3rver } from './s3.ts';

/** A real server that speaks S3, with one bucket; it lists ten objects on a page. */
export interface Bucket {
  readonly endpoint: string;
  /** Changed last at `at`; S3 tells seconds only. */
  put(key: string, content: string | Uint8Array, at: string): Promise<void>;
  stop(): Promise<void>;
}

type S3rverConstructor = new (options: object) => S3rver & { close(): Promise<void> };

export async function startBucket(name: string): Promise<Bucket> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bucket-'));
  await mkdir(join(directory, name));
  const server = new (createRequire(import.meta.url)('s3rver') as S3rverConstructor)({
    ...{ address: '127.0.0.1', port: 0, silent: true, directory },
    vhostBuckets: false,
  });
  listInPages(server);
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
