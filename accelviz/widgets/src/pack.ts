// Reads what Python packed: a header in JSON, then typed arrays. `accelviz/widgets/pack.py` writes it.

const ARRAYS = {
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array,
};

async function through(bytes, change) {
  const stream = new Blob([bytes]).stream().pipeThrough(change);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text) {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Arrays that were sent as differences add up again; they wrap around as their type does.
function summed(array) {
  for (let i = 1; i < array.length; i++) array[i] += array[i - 1];
  return array;
}

// `{"$array": n}` in the header stands for array n.
function filled(value, arrays) {
  if (Array.isArray(value)) return value.map((each) => filled(each, arrays));
  if (value === null || typeof value !== "object") return value;
  if ("$array" in value) return arrays[value.$array];
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, filled(own, arrays)]));
}

export function unpack(bytes) {
  const whole = bytes.slice(); // which begins where every type of array may begin
  const length = new DataView(whole.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(whole.subarray(8, 8 + length)));
  const arrays = header.arrays.map(({ type, offset, count, differences }) => {
    const array = new ARRAYS[type](whole.buffer, offset, count);
    return differences ? summed(array) : array;
  });
  return filled(header.content, arrays);
}

export async function unpackText(text) {
  return unpack(await through(fromBase64(text), new DecompressionStream("deflate-raw")));
}

/** The text of what came packed, for `unpackText`. */
export async function textOf(bytes) {
  let letters = "";
  for (const byte of await through(bytes, new CompressionStream("deflate-raw"))) letters += String.fromCharCode(byte);
  return btoa(letters);
}
