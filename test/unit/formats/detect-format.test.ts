import { expect, it } from 'vitest';
import { detectFormat, type FormatHints } from '../../../src/formats/detect-format.ts';

const detect = (head: string, hints: FormatHints = {}) => detectFormat(Buffer.from(head, 'latin1'), hints);

it('unambiguous content overrides the name and the content type', () => {
  expect(detect('[{"user_id":1}]', { filename: 'a.csv' })).toBe('json');
  expect(detect(' \n[', { contentType: 'application/x-ndjson' })).toBe('json');
  expect(detect('\xef\xbb\xbf{ "users" :\n[', { filename: 'a.ndjson' })).toBe('json');
  expect(detect('{"companies":[', {})).toBe('json');
  expect(detect('{"user_id":"1"}\n', { filename: 'a.csv' })).toBe('ndjson');
  expect(detect('{"user_id":"1"}\n{', { contentType: 'application/json' })).toBe('ndjson');
});

it('without clear content the name decides, then the content type, then CSV', () => {
  expect(detect('garbage', { filename: 'A.NDJSON.GZ' })).toBe('ndjson');
  expect(detect('garbage', { filename: 'a.csv', contentType: 'application/json' })).toBe('csv');
  expect(detect('garbage', { contentType: 'application/x-ndjson; charset=utf-8' })).toBe('ndjson');
  expect(detect('garbage', { contentType: 'application/json' })).toBe('json');
  expect(detect('user_id,name', { filename: 'upload', contentType: 'application/octet-stream' })).toBe('csv');
  expect(detect('')).toBe('csv');
});

it('an expected object is JSON only if the content type is JSON', () => {
  expect(detect('{"foo":[]}', { contentType: 'application/json', envelope: 'users' })).toBe('json');
  expect(detect('{"foo":[]}', { contentType: 'application/x-ndjson', envelope: 'users' })).toBe('ndjson');
});

it('a specified format overrides content and name', () => {
  expect(detect('[', { format: 'csv' })).toBe('csv');
  expect(detect('a,b', { format: 'json', filename: 'a.csv' })).toBe('json');
});

it('binary files are refused by their kind', () => {
  const refusalOf = (head: string) => {
    try {
      return detect(head, { format: 'csv' });
    } catch (error) {
      return (error as Error).message;
    }
  };
  const entry = `PK\x03\x04${'\0'.repeat(26)}`;
  expect(refusalOf(`${entry}users.csv`)).toContain('This is a ZIP archive;');
  expect(refusalOf('%PDF-1.7')).toContain('a PDF');
  expect(refusalOf('\xd0\xcf\x11\xe0\xa1')).toContain('(.xls)');
  expect(refusalOf('\x28\xb5\x2f\xfd')).toContain('zstd');
  expect(refusalOf('PAR1,PAR2\n')).toBe('csv');
});
