/*
 * `where`: a condition in an export request, in the language of segments. The export contains the
 * users that meet the condition when the export begins, with their companies and events. The ledger
 * and the manifest store the condition.
 */
import { Type } from 'typebox';
import { FinalFailure, type Problem } from '../../base/errors.ts';
import { pathText } from '../../base/operator-file/schema.ts';
import { worded } from '../../base/validation.ts';
import type { Capability } from '../../capability.ts';
import type { ExportOption } from '../../export/seam.ts';
import { readDefinitionText } from '../../lookups/definitions.ts';
import { compileSegment } from '../../lookups/segments/compile-segment.ts';
import { readSegment } from '../../lookups/segments/read-segment.ts';

/** Maximum size of the condition as JSON. */
export const MAX_WHERE_BYTES = 64 * 1024;

const whereOption: ExportOption<object> = {
  schema: worded(
    Type.Unsafe<object | string>({
      type: ['object', 'string'],
      additionalProperties: true,
      description:
        'Only export the users that meet this condition when the export begins, their companies and their events. It is in the language of docs/segments.md: an object, or its text in YAML or JSON.',
      examples: [{ property: 'plan', equals: 'pro' }],
    }),
    'where must be an object or text',
  ),
  flag: '--where <condition>',
  description: 'only users that meet this condition, and what belongs to them: docs/where.md',
  read(given, problems) {
    const condition = typeof given === 'string' ? parseText(given, problems) : readObject(given, problems);
    if (condition === null || !isTooLong(JSON.stringify(condition))) return condition;
    problems.push(tooLong);
    return null;
  },
  async select(_, scope, condition) {
    const { segment } = readSegment(condition);
    if (segment !== null) return (user) => compileSegment(segment, { ...scope, user });
    throw new FinalFailure('invalid_field', 'This version of sluice cannot read the condition of the export');
  },
};

function readObject(given: unknown, problems: Problem[]): object | null {
  const reading = readSegment(given);
  problems.push(
    ...reading.problems.map(({ keys, message }): Problem => {
      const place = pathText('where', keys);
      return { code: 'invalid_field', message: `${place} ${message}`, details: place };
    }),
  );
  return reading.segment === null ? null : (given as object);
}

function parseText(text: string, problems: Problem[]): object | null {
  if (isTooLong(text)) {
    problems.push(tooLong);
    return null;
  }
  const reading = readDefinitionText(text);
  problems.push(
    ...reading.problems.map(({ line, column, message }): Problem => {
      const details = `where: line ${line}, column ${column}`;
      return { code: 'invalid_field', message: ofCondition(message), details };
    }),
  );
  return reading.value as object | null;
}

/** Rewrites a message about a file (`all[0] must …`), so that it names the place in `where`. */
function ofCondition(message: string): string {
  if (message.startsWith('the file ')) return message.replace('the file', 'where');
  return message.startsWith('[') ? `where${message}` : `where.${message}`;
}

function isTooLong(text: string): boolean {
  return Buffer.byteLength(text) > MAX_WHERE_BYTES;
}

const tooLong: Problem = {
  code: 'invalid_field',
  message: `where has more than ${MAX_WHERE_BYTES} bytes. Make it a segment, and name that in segment_id`,
  details: 'where',
};

export const where: Capability = { name: 'where', exports: { options: { where: whereOption } } };
