import { capitalise } from './wording.ts';

// A sentence that mentions options is stored in parts, because option names differ between
// interfaces: `write` renders an option as a parameter, a flag or a form field.

interface NamedOption {
  readonly option: string;
  /** Empty if the sentence mentions the option without a value. */
  readonly value: string;
  /** True if the sentence recommends the option, in the form `with name=value`. */
  readonly isRecommended: boolean;
}

export type Part = string | NamedOption;

/** Plain data, because sandboxes send sentences to another process. */
export type Sentence = string | readonly Part[];

export interface Naming {
  readonly name: (option: NamedOption) => string;
  /** Word before a recommended option, such as `with`. */
  readonly preposition: string;
}

/** Names options as HTTP parameters. Logs and the database use these names, too. */
const parameters: Naming = { name: ({ option, value }) => `${option}=${value}`, preposition: 'with' };

export function named(option: string, value = ''): NamedOption {
  return { option, value, isRecommended: false };
}

export function using(option: string, value: string): NamedOption {
  return { option, value, isRecommended: true };
}

/** Template tag that builds a sentence from text and options, other sentences, or numbers. */
export function say(
  texts: TemplateStringsArray,
  ...values: readonly (NamedOption | Sentence | number)[]
): readonly Part[] {
  return texts.flatMap((text, index) => {
    const value = values[index] ?? '';
    return [text, ...(Array.isArray(value) ? value : [typeof value === 'number' ? String(value) : value])];
  });
}

export function write(sentence: Sentence, { name, preposition }: Naming = parameters): string {
  if (typeof sentence === 'string') return sentence;
  const texts = sentence.map((part) => {
    if (typeof part === 'string') return part;
    return part.isRecommended ? `${preposition} ${name(part)}` : name(part);
  });
  return texts.join('');
}

/** Capitalises the first word of a sentence, unless it is an option name. */
export function capitaliseSentence(sentence: Sentence): Sentence {
  if (typeof sentence === 'string') return capitalise(sentence);
  return sentence.map((part, index) => (index === 0 && typeof part === 'string' ? capitalise(part) : part));
}
