import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../../src/base/config.ts';
import { workerEnvironment } from '../../../src/cli/processes.ts';

const storageOf = (url: string, env: Record<string, string> = {}) =>
  readConfig({ STORAGE_URL: url, DATA_DIR: '/data', ...env }).storage;

test('STORAGE_URL names a folder, or a bucket with a prefix', () => {
  expect(storageOf('')).toEqual({ kind: 'folder', directory: resolve('/data/files') });
  expect(storageOf('file:///mnt/shared')).toEqual({ kind: 'folder', directory: '/mnt/shared' });
  for (const folder of ['here', './a//b', 'a/b:c', 'C:\\data'])
    expect(storageOf(folder)).toEqual({ kind: 'folder', directory: resolve(folder) });
  const s3 = { kind: 's3', bucket: 'bucket', presign: true, credentials: null };
  expect(storageOf('s3://bucket')).toEqual({
    ...s3,
    url: 's3://bucket',
    prefix: '',
    endpoint: null,
    region: null,
    pathStyle: false,
  });
  const url = 's3://bucket/a/b-1/?endpoint=http://minio:9000&region=eu-central-1';
  expect(
    storageOf(url, { STORAGE_PRESIGN: 'false', AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }),
  ).toEqual({
    ...s3,
    url,
    prefix: 'a/b-1',
    endpoint: 'http://minio:9000',
    region: 'eu-central-1',
    pathStyle: true,
    presign: false,
    credentials: { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: null },
  });
  expect(storageOf('s3://bucket?endpoint=https://s3.example.com&path_style=false')).toMatchObject({
    region: 'us-east-1',
    pathStyle: false,
  });
});

test.each([
  ['s3://', /names no bucket|is wanted/],
  ['s3://Bucket_1', /a bucket has 3 to 63/],
  ['s3://key:hidden@bucket', /credentials do not belong into it/],
  ['s3://bucket/../x y', /the prefix may have/],
  [`s3://bucket/${'a'.repeat(201)}`, /the prefix may have/],
  ['s3://bucket?regoin=hidden', /unknown parameter "regoin"; there are endpoint, region, path_style/],
  ['s3://bucket?region=a&region=hidden', /region is given twice/],
  ['s3://bucket?endpoint=minio:9000', /endpoint is wanted/],
  ['s3://bucket?endpoint=http://key:hidden@minio', /endpoint is wanted/],
  ['s3://bucket?path_style=yes', /path_style is true or false/],
  ['s3://bucket#x', /after #/],
  ['gs://bucket', /s3:\/\/bucket\/prefix is wanted/],
  ['s3:/bucket', /s3:\/\/bucket\/prefix is wanted/],
])('the storage %s is refused with the rule, and without its secret', (url, rule) => {
  const error = (() => {
    try {
      return storageOf(url);
    } catch (caught) {
      return caught;
    }
  })() as Error;
  expect(error.name).toBe('ConfigError');
  expect(error.message).toMatch(rule);
  expect(error.message).toMatch(/^STORAGE_URL: /);
  expect(error.message).not.toContain('hidden');
});

test('an access key without its secret is refused', () => {
  expect(() => storageOf('s3://bucket', { AWS_ACCESS_KEY_ID: 'id' })).toThrow(/both are wanted, or neither/);
});

test('worker processes use the bucket of their service', () => {
  const processEnv = {
    STORAGE_URL: 's3://bucket/a',
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'secret',
  };
  const workerEnv = workerEnvironment(processEnv, readConfig(processEnv), 'postgres://x');
  expect(readConfig(workerEnv).storage).toEqual(readConfig(processEnv).storage);
});
