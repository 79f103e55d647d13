/** Colours of teams: eight hues that people with any colour vision can tell apart, and initials beside them. */
export const HUES = 8;

/** The same colour for a team in every view and session: by its name, not by its place in a list. */
export function hue(owner: string): number {
  let sum = 0;
  for (const letter of owner) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return sum % HUES;
}

const given = new Map<string, number>();

/** Colours for the teams that are there: their own where it is free, else the next free one. */
export function giveColours(owners: readonly string[]): void {
  for (const owner of owners) {
    if (given.has(owner)) continue;
    const taken = new Set(given.values());
    let wanted = hue(owner);
    for (let tries = 0; tries < HUES && taken.has(wanted); tries++) wanted = (wanted + 1) % HUES;
    given.set(owner, wanted);
  }
}

export function colour(owner: string): string {
  if (!given.has(owner)) giveColours([owner]);
  return `var(--team-${given.get(owner)})`;
}

export function initials(owner: string): string {
  const words = owner.split(/[^A-Za-z0-9]+/).filter(Boolean);
  return (words.length > 1 ? words[0]![0]! + words[1]![0]! : owner.slice(0, 2)).toUpperCase();
}
