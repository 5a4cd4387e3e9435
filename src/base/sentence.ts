import { capitalise } from './wording.ts';

// Option names differ between interfaces, so a sentence stores them separately from its text.
// `write` renders them as parameters, flags or form fields.

interface NamedOption {
  readonly option: string;
  /** Value of the option. Empty if the sentence mentions only the option's name. */
  readonly value: string;
  /** True if the sentence recommends the option, in the form `with name=value`. */
  readonly isRecommended: boolean;
}

export type Part = string | NamedOption;

/** A sentence is plain data, because sandboxes send it to another process. */
export type Sentence = string | readonly Part[];

export interface Naming {
  readonly name: (option: NamedOption) => string;
  /** The word before a recommended option, such as `with`. */
  readonly preposition: string;
}

/** Names options as HTTP parameters. Logs and the database use this form. */
const parameters: Naming = { name: ({ option, value }) => `${option}=${value}`, preposition: 'with' };

export function named(option: string, value = ''): NamedOption {
  return { option, value, isRecommended: false };
}

export function using(option: string, value: string): NamedOption {
  return { option, value, isRecommended: true };
}

/** Builds a sentence from text, options, other sentences and numbers. */
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

/** Capitalises the first word of a sentence. Leaves an option name unchanged. */
export function capitaliseSentence(sentence: Sentence): Sentence {
  if (typeof sentence === 'string') return capitalise(sentence);
  return sentence.map((part, index) => (index === 0 && typeof part === 'string' ? capitalise(part) : part));
}
