import type { Problem } from '../domain/errors.ts';
import { type Exclusion, exclusionKinds } from '../domain/export.ts';
import { MAX_EXCLUSION_PATTERNS, MAX_EXCLUSIONS, MAX_ID_BYTES } from '../domain/limits.ts';
import { textProblem } from './text-problem.ts';

/** `user:ID, event:KEY, segment:ID`: reads every term, and notes those that are none. */
export function readExclusions(value: unknown, problems: Problem[]): Exclusion[] {
  if (value === undefined || value === null) return [];
  const text =
    Array.isArray(value) && value.every((term) => typeof term === 'string') ? value.join(',') : value;
  if (typeof text !== 'string') {
    problems.push(problem('exclusions must be a string such as user:u1,event:page_*', 'exclusions'));
    return [];
  }
  const terms = text.split(',').map((term) => term.trim());
  const given = terms.filter((term) => term !== '');
  if (given.length > MAX_EXCLUSIONS) {
    problems.push(problem(`exclusions may have ${MAX_EXCLUSIONS} terms`, 'exclusions'));
    return [];
  }
  if (given.filter((term) => term.includes('*')).length > MAX_EXCLUSION_PATTERNS) {
    problems.push(problem(`exclusions may have ${MAX_EXCLUSION_PATTERNS} terms with a *`, 'exclusions'));
    return [];
  }
  return given.flatMap((term) => readTerm(term, problems) ?? []);
}

/** An id may hold colons: the first one divides. */
function readTerm(term: string, problems: Problem[]): Exclusion | null {
  const [name = '', pattern = ''] = splitAt(term, term.indexOf(':'));
  const kind = exclusionKinds.find((each) => each === name.trim());
  const details = `exclusions: ${shorten(term)}`;
  if (kind === undefined) {
    const kinds = exclusionKinds.map((each) => `${each}:…`).join(', ');
    problems.push(problem(`A term of exclusions is one of ${kinds}`, details));
    return null;
  }
  // A pattern is as long as what it is to match, with room for a star at both ends.
  const wrong = textProblem(pattern.trim(), MAX_ID_BYTES + 2);
  if (wrong !== null) {
    problems.push(problem(`What follows ${kind}: ${wrong}`, details));
    return null;
  }
  if (kind === 'segment' && !/^[\d*]+$/.test(pattern.trim())) {
    problems.push(problem('A segment is named by its id, from the lookup of segments', details));
    return null;
  }
  return { kind, pattern: pattern.trim().replace(/\*+/g, '*') };
}

function splitAt(term: string, at: number): string[] {
  return at < 0 ? [term] : [term.slice(0, at), term.slice(at + 1)];
}

function problem(message: string, details: string): Problem {
  return { code: 'invalid_field', message, details };
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text.toWellFormed();
}
