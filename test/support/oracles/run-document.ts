import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import type { Run } from '../../../src/http/run.ts';

/** The published schema, as a receiver of the document would use it. */
const schema = JSON.parse(readFileSync(join(packageRoot, 'docs/schemas/run.schema.json'), 'utf8'));

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
const validate = ajv.compile<Run>(schema);

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/**
 * Expects that a document matches the published schema, and that its counts balance. Returns only
 * the members that the schema defines.
 */
export function checkRun(value: unknown): Run {
  validate(value);
  expect(validate.errors ?? []).toEqual([]);
  const run = Object.fromEntries(
    Object.keys(schema.properties).map((name) => [name, (value as Run)[name as keyof Run]]),
  ) as Run;
  const { counts, rejects, files, phases } = run;
  const { read, written, requested, ...parts } = counts as Readonly<Record<string, number>>;
  expect(sum(Object.values(parts)), `parts of ${JSON.stringify(counts)}`).toBe(read ?? written ?? requested);
  expect(rejects.count).toBe('rejected' in counts ? counts.rejected : 0);
  if (rejects.count === 0) expect(rejects.links).toBeNull();
  expect(sum(Object.values(rejects.by_code as Readonly<Record<string, number>>))).toBe(rejects.count);
  expect(sum(files.map(({ rows }) => rows))).toBe('written' in counts ? counts.written : 0);
  const times = phases.map(({ at }) => at);
  expect(times).toEqual(times.toSorted());
  return run;
}
