// Unpacks data of `accelviz/widgets/pack.py`: the header's length (4 bytes), 4 bytes of padding,
// the header in JSON, and typed arrays.

const ARRAYS = {
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array,
};
type Packed = InstanceType<typeof ARRAYS[keyof typeof ARRAYS]>;

interface Entry {
  type: keyof typeof ARRAYS;
  offset: number; // in bytes from the beginning of the data
  count: number;
  /** Whether elements are stored as differences to the previous one: the low bytes of all of them,
   *  then the next bytes. */
  differences: boolean;
}

export function unpack<Type>(bytes: Uint8Array): Type {
  const aligned = bytes.slice(); // typed arrays need aligned memory
  const length = new DataView(aligned.buffer).getUint32(0, true);
  const text = new TextDecoder().decode(aligned.subarray(8, 8 + length));
  // The header is {"content": data}; in it, `{"$array": entry}` stands for an array.
  return JSON.parse(text, (_, value: { $array?: Entry } | null) => {
    if (!value?.$array) return value;
    const { type, offset, count, differences } = value.$array;
    const Type = ARRAYS[type];
    if (!differences) return new Type(aligned.buffer, offset, count);
    const array: Packed = new Type(count), size = Type.BYTES_PER_ELEMENT;
    const planes = new Uint8Array(aligned.buffer, offset, size * count);
    for (let i = 0; i < count; i++) {
      let element = i ? array[i - 1] : 0;
      for (let byte = 0; byte < size; byte++) element += planes[byte * count + i] * 256 ** byte;
      array[i] = element; // sums wrap around in the array's type, as the differences did
    }
    return array;
  }).content;
}

/** Unpack a text: base64 of data compressed by raw deflate (`pack_text` in pack.py). */
export async function unpackText<Type>(text: string): Promise<Type> {
  const binary = atob(text.trim()); // a character per byte
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
}
