import type { MaxErrors } from '../../domain/load.ts';
import { isMailAddress } from '../../domain/mail-address.ts';
import type { Field } from '../../operator-file/field.ts';
import { type TextRule, text } from '../../operator-file/scalar-fields.ts';
import { describeNode, type SourceNode, toJson } from '../../operator-file/source.ts';
import { cronProblem, isTimeZone } from '../due-times.ts';
import { placeholderProblem } from '../placeholders.ts';

/** A text for which `problem` has nothing to say. */
export function checkedText(rule: TextRule, problem: (value: string) => string | null): Field<string> {
  const field = text(rule);
  return {
    schema: field.schema,
    read(node, problems) {
      const value = field.read(node, problems);
      const wrong = value === undefined ? null : problem(value);
      if (wrong !== null) problems.note(node, node.path, wrong);
      return wrong === null ? value : undefined;
    },
  };
}

/** A text that may hold `${env:SCHEDULE_…}`. */
export function secretText(rule: TextRule): Field<string> {
  return checkedText(rule, placeholderProblem);
}

export const cronField: Field<string> = checkedText(
  {
    maxChars: 200,
    description: 'Minute, hour, day of the month, month, day of the week; or a name such as @daily.',
  },
  cronProblem,
);

export const timeZoneField: Field<string> = checkedText(
  { maxChars: 64, description: 'A time zone such as Europe/Berlin.' },
  (value) => (isTimeZone(value) ? null : 'is no time zone; write one such as Europe/Berlin or UTC'),
);

export const mailField: Field<string> = checkedText(
  { maxChars: 254, description: 'One plain address such as ada@example.com.' },
  (value) => (isMailAddress(value) ? null : 'must be one plain address such as ada@example.com'),
);

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `30m`, `24h`, `7d`; in milliseconds. */
export function duration(description: string, leastMs: number, mostMs: number): Field<number> {
  return {
    schema: { type: 'string', description, pattern: '^[1-9]\\d{0,5}[smhd]$' },
    read(node, problems) {
      if (node.kind === 'refused') return undefined;
      const given = node.kind === 'scalar' && typeof node.value === 'string' ? node.value : '';
      const match = /^([1-9]\d{0,5})([smhd])$/.exec(given);
      const ms = Number(match?.[1]) * (unitMs[match?.[2] ?? ''] ?? Number.NaN);
      if (ms >= leastMs && ms <= mostMs) return ms;
      const rule =
        match === null
          ? 'must be a time such as 30m, 24h or 7d'
          : `must be ${leastMs / 1000} to ${mostMs / 1000} seconds`;
      problems.note(node, node.path, `${rule}, not ${describeNode(node)}`);
      return undefined;
    },
  };
}

/** `100`, or `5%`. */
export const maxErrorsField: Field<MaxErrors> = {
  schema: {
    description: 'More refused records than this, a number or a share, fail the load.',
    anyOf: [
      { type: 'integer', minimum: 0 },
      { type: 'string', pattern: '^(\\d{1,15}|\\d{1,3}(\\.\\d{1,6})?%)$' },
    ],
  },
  read(node, problems) {
    if (node.kind === 'refused') return undefined;
    const match = /^(\d{1,15}|\d{1,3}\.\d{1,6}(?=%))(%?)$/.exec(
      String(node.kind === 'scalar' ? node.value : ''),
    );
    const number = Number(match?.[1]);
    if (match?.[2] === '%' && number <= 100) return { percent: number };
    if (match?.[2] === '') return { count: number };
    problems.note(
      node,
      node.path,
      `must be a number such as 100 or a share such as 5%, not ${describeNode(node)}`,
    );
    return undefined;
  },
};

const mostMembers = 1_000;

/** An object of texts; `check` looks at each name. */
export function texts(
  description: string,
  value: Field<string>,
  nameProblem: (name: string) => string | null,
): Field<Readonly<Record<string, string>>> {
  return {
    schema: { type: 'object', description, additionalProperties: value.schema },
    read(node, problems) {
      if (node.kind === 'refused') return undefined;
      if (node.kind !== 'object' || node.members.length > mostMembers) {
        const rule = `must be an object of at most ${mostMembers} texts`;
        problems.note(node, node.path, `${rule}, not ${describeNode(node)}`);
        return undefined;
      }
      const entries = node.members.map((member) => {
        const wrong = nameProblem(member.name);
        if (wrong !== null) problems.note(member, member.path, wrong);
        return [member.name, value.read(member.value, problems)] as const;
      });
      return entries.every(([, each]) => each !== undefined)
        ? (Object.fromEntries(entries) as Record<string, string>)
        : undefined;
    },
  };
}

/** Whatever JSON has there; what reads it says what is wrong with it. */
export function anything(schema: Readonly<Record<string, unknown>>): Field<unknown> {
  return { schema, read: (node: SourceNode) => toJson(node) };
}
