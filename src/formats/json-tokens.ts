/**
 * The inside of strings, numbers and literals as one table: state and byte give the next state. It can be left and
 * entered again between any two bytes, which is how a token survives the edge of a buffer.
 *
 * Bytes of 0x80 and above are taken in strings only; that they are UTF-8 is checked elsewhere.
 */
export const tokenState = { string: 1, lastOfString: 6 } as const;

/** Results that are no states. Every result from `tokenStopped` on is one of them. */
export const tokenStopped = 253; // a number ended before this byte
export const tokenEnded = 254; // this byte is the token's last
export const tokenBroken = 255;

const digits = '0123456789';

/** Next state at [state * 256 + byte]. */
export const tokenTable: Uint8Array = buildTable();

/** 1 for the bytes that leave a string in its state. */
export const isPlain: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  tokenTable[tokenState.string * 256 + byte] === tokenState.string ? 1 : 0,
);

/** State after the first byte of a string, number or literal; `tokenBroken` if none starts with it. */
export function firstState(byte: number): number {
  return firstStates[byte] as number;
}

const firstStates: Uint8Array = buildFirstStates();

function buildFirstStates(): Uint8Array {
  const states = new Uint8Array(256).fill(tokenBroken);
  for (const digit of digits) states[code(digit)] = digit === '0' ? 8 : 9;
  for (const [first, state] of Object.entries({ '"': 1, '-': 7, t: 15, f: 18, n: 22 }))
    states[code(first)] = state;
  return states;
}

function buildTable(): Uint8Array {
  const table = new Uint8Array(256 * 26).fill(tokenBroken);
  const on = (state: number, bytes: string, next: number) => {
    for (const byte of bytes) table[state * 256 + code(byte)] = next;
  };
  addStrings(table, on);
  addNumbers(on);
  addLiteral(on, 15, 'rue');
  addLiteral(on, 18, 'alse');
  addLiteral(on, 22, 'ull');
  return table;
}

type On = (state: number, bytes: string, next: number) => void;

/** 1: inside; 2: after a backslash; 3 to 6: the digits of \uXXXX. */
function addStrings(table: Uint8Array, on: On): void {
  table.fill(1, 256 + 0x20, 512);
  on(1, '"', tokenEnded);
  on(1, '\\', 2);
  on(2, '"\\/bfnrt', 1);
  on(2, 'u', 3);
  for (let state = 3; state <= 6; state++) on(state, `${digits}abcdefABCDEF`, state === 6 ? 1 : state + 1);
}

/** 7: -; 8: 0; 9: 12; 10: 1.; 11: 1.5; 12: 1e; 13: 1e-; 14: 1e5. The complete ones end before anything else. */
function addNumbers(on: On): void {
  const anything = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).join('');
  for (const complete of [8, 9, 11, 14]) on(complete, anything, tokenStopped);
  on(7, digits, 9);
  on(7, '0', 8);
  on(9, digits, 9);
  for (const state of [8, 9]) on(state, '.', 10);
  for (const state of [8, 9, 11]) on(state, 'eE', 12);
  for (const state of [10, 11]) on(state, digits, 11);
  on(12, '+-', 13);
  for (const state of [12, 13, 14]) on(state, digits, 14);
}

function addLiteral(on: On, first: number, rest: string): void {
  [...rest].forEach((letter, index) => {
    on(first + index, letter, index === rest.length - 1 ? tokenEnded : first + index + 1);
  });
}

function code(character: string): number {
  return character.charCodeAt(0);
}
