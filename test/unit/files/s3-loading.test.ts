import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const script = `
  import { createRequire } from 'node:module';
  const { openFileStore } = await import('./src/files/storage.ts');
  const { readConfig } = await import('./src/base/config.ts');
  const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('client-s3'));
  const url = 's3://bucket?endpoint=http://127.0.0.1:1';
  const { storage } = readConfig({ STORAGE_URL: url, AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' });
  const store = openFileStore(storage, 1);
  const before = loaded();
  await store.create();
  console.log(JSON.stringify([before, loaded()]));`;

test('the SDK of S3 is loaded at its first use, not before', async () => {
  const arguments_ = ['--import', 'tsx', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, arguments_, {
    cwd: resolve(import.meta.dirname, '../../..'),
  });
  expect(JSON.parse(stdout)).toEqual([false, true]);
});
