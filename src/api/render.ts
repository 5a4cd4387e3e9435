type Snake<S extends string> = S extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : S;

type Shown<V> = V extends Date ? string : V;

export type Rendered<T> = { [Name in keyof T & string as Snake<Name>]: Shown<T[Name]> };

/** Renders a row as a record: its names in snake case, its times as text. What is inside a value stays as it is. */
export function render<T extends object>(row: T): Rendered<T> {
  const members = Object.entries(row).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value instanceof Date ? value.toISOString() : value,
  ]);
  return Object.fromEntries(members) as Rendered<T>;
}
