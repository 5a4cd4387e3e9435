import type { Answer, ApiDocument, Operation, Reference } from './api-document.ts';
import { codesIn } from './schemas/error-answers.ts';

type Paths = ApiDocument['paths'];

/**
 * Refusals with one code, such as that of a missing key, are alike in most operations: they are told once, under
 * components, by the name of their code.
 */
export function shareRefusals(paths: Paths): {
  readonly paths: Paths;
  readonly responses: Record<string, Answer>;
} {
  const shared = findShared(paths);
  const texts = new Map([...shared].map(([name, answer]) => [JSON.stringify(answer), name]));
  return {
    responses: Object.fromEntries(shared),
    paths: mapAnswers(paths, (answer) => {
      const name = texts.get(JSON.stringify(answer));
      return name === undefined ? answer : { $ref: `#/components/responses/${name}` };
    }),
  };
}

/** What several operations have in common; of several answers with one name, the first. */
function findShared(paths: Paths): Map<string, Answer> {
  const seen = new Set<string>();
  const shared = new Map<string, Answer>();
  mapAnswers(paths, (answer) => {
    const name = nameOf(answer);
    const text = JSON.stringify(answer);
    if (name !== null && seen.has(text) && !shared.has(name)) shared.set(name, answer);
    seen.add(text);
    return answer;
  });
  return shared;
}

/** `rate_limited` → `RateLimited`; null for what is no refusal, or one with several codes. */
function nameOf(answer: Answer): string | null {
  const [code, ...others] = codesIn(answer);
  if (code === undefined || others.length > 0) return null;
  return code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function mapAnswers(paths: Paths, change: (answer: Answer) => Answer | Reference): Paths {
  const mapOperation = (operation: Operation): Operation => ({
    ...operation,
    responses: mapValues(operation.responses, (answer) => ('$ref' in answer ? answer : change(answer))),
  });
  return mapValues(paths, (path) => mapValues(path, mapOperation));
}

function mapValues<A, B>(object: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
