/**
 * Returns strings of lower-case letters and digits that all have the same 32-bit FNV-1a hash. Each
 * stage finds two pieces that lead to the same state of the hash, so n stages yield 2^n strings.
 */
export function collidingKeys(count: number): string[] {
  const stages: (readonly [string, string])[] = [];
  let state = 0x811c9dc5;
  for (let total = 1; total < count; total *= 2) {
    const stage = findPieces(state);
    stages.push(stage.pieces);
    state = stage.state;
  }
  return Array.from({ length: count }, (_, number) =>
    stages.map((pieces, stage) => pieces[(number >> stage) & 1]).join(''),
  );
}

function findPieces(from: number): { readonly pieces: readonly [string, string]; readonly state: number } {
  const pieces = new Map<number, string>();
  // Tries numbers in random order, because consecutive numbers hardly ever collide.
  let number = 48_271;
  while (true) {
    const piece = number.toString(36).padStart(6, '0');
    const state = hashFrom(from, piece);
    const earlier = pieces.get(state);
    if (earlier !== undefined) return { pieces: [earlier, piece], state };
    pieces.set(state, piece);
    number = (number * 48_271) % 2_147_483_647;
  }
}

function hashFrom(state: number, text: string): number {
  let hash = state;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}
